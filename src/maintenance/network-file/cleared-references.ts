// Plans how deletions change other records: roles and other references by which these name a deleted record.
import { setImmediate } from 'node:timers/promises'
import type { AnyResource, AnyRow } from '../../definitions/resources/define.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import type { AnyField } from '../../definitions/schema/fields.ts'
import { SetMap } from '../../policy/set-map.ts'
import { findMentioningIds, listMentionsByRule } from '../../storage/entities/mentions.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import { selectRows, withParent } from '../../storage/entities/subtypes.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { type FileResource, fileResources, listMembers } from './file-resources.ts'
import type { KnownNames } from './known-names.ts'
import type { DeleteStep, MemberChange, PlannedValues, PlanStep } from './plan-step.ts'
import { describeDifferences, listDifferences } from './record-comparison.ts'
import { loadNames } from './record-names.ts'
import { isObject, type TranslateReference } from './references.ts'

/** A record that loses references by deletions of the plan. The file says nothing about it. */
export interface ClearedRecord {
  readonly fileResource: FileResource
  readonly label: string
  readonly members: readonly MemberChange[]
}

const PAGE = 200

/**
 * The records that name records which the steps delete, and are not deleted themselves.
 * @param names also of the records that the plan creates
 */
export async function listClearedRecords(
  context: Pick<ReadContext, 'db'>,
  steps: readonly PlanStep[],
  names: KnownNames,
): Promise<ClearedRecord[]> {
  const deletedIds = new SetMap()
  const mentioningIds = new SetMap()
  const changedRecords = new Map<string, PlannedValues>()
  for (const step of steps) {
    if (step.action !== 'delete') {
      changedRecords.set(step.id, step.after)
      continue
    }
    for (const resource of listDeletedResources(step)) {
      for (const plural of withParent(resource.plural)) deletedIds.add(plural, step.id)
      for (const mention of listMentionsByRule(resource, 'clear')) {
        for (const id of await findMentioningIds(context, mention, step.id)) mentioningIds.add(mention.from.plural, id)
      }
    }
    await setImmediate()
  }
  const clearedRecords: ClearedRecord[] = []
  for (const fileResource of fileResources) {
    const { resource } = fileResource
    const ids = [...mentioningIds.get(resource.plural)].filter((id) => !deletedIds.get(resource.plural).has(id))
    for (let at = 0; at < ids.length; at += PAGE) {
      const query = selectRows(context.db, resource)
        .selectAll()
        .where(isOneOf(context.db, 'id', ids.slice(at, at + PAGE)))
      const rows = (await query.orderBy('name').execute()) as unknown as AnyRow[]
      const records = rows.map((row) => changedRecords.get(row.id) ?? (entityFromRow(resource, row) as PlannedValues))
      clearedRecords.push(...(await describeClearedRecords(context, fileResource, records, deletedIds, names)))
      await setImmediate()
    }
  }
  return clearedRecords
}

/** The resources of the records that a deletion deletes under one id: an edge router goes with the identity of its tunneler. */
function listDeletedResources({ fileResource: { resource }, before }: DeleteStep): readonly AnyResource[] {
  const hasIdentity = resource.plural === edgeRouters.plural && before.isTunnelerEnabled === true
  return hasIdentity ? [resource, identities] : [resource]
}

async function describeClearedRecords(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
  records: readonly PlannedValues[],
  deletedIds: SetMap,
  names: KnownNames,
): Promise<ClearedRecord[]> {
  const toStoredName = await loadNames(context, fileResource, records)
  const toName: TranslateReference = (target, id) => names.findName(id) ?? toStoredName(target, id)
  return records.flatMap((before) => {
    // Policies of the controller itself go with the record that they are about.
    if (before.isSystem === true) return []
    const after: Record<string, unknown> & { id: string } = { ...before }
    for (const { fieldName, field } of listMembers(fileResource, before.typeId))
      after[fieldName] = withoutDeleted(field, before[fieldName], deletedIds)
    const differences = listDifferences(fileResource, before, after)
    if (differences.length === 0) return []
    const members = describeDifferences(fileResource, before, after, differences, toName)
    return { fileResource, label: String(before.name), members }
  })
}

/** The value without what names deleted records. */
function withoutDeleted({ kind }: AnyField, value: unknown, deletedIds: SetMap): unknown {
  const { target, keyTarget, roles } = kind
  const ids = deletedIds.get(keyTarget ?? target ?? '')
  if (ids.size === 0) return value
  const isDeleted = (entry: string) => (roles ? entry.startsWith('@') && ids.has(entry.slice(1)) : ids.has(entry))
  if (Array.isArray(value)) return value.filter((entry) => !isDeleted(entry))
  if (keyTarget === undefined || !isObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([id]) => !ids.has(id)))
}
