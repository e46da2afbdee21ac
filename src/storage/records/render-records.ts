// Renders rows as the JSON of responses: declared fields only, JSON columns copied as they are stored.

import { getCompiledResource } from '../../definitions/model/index.ts'
import type { ComputedMember, RecordPlan, Reference, ReferencesById } from '../../definitions/model/record-plan.ts'
import type { AnyResource, AnyRow, ComputedInput } from '../../definitions/resources/define.ts'
import { encodeForms, type FormDifference } from '../../definitions/schema/json-forms.ts'
import type { Behaviors } from '../behavior.ts'
import type { ReadContext } from '../transactions/context.ts'
import { toJsonText } from './raw-json.ts'
import { findReferences, renderReferenceMembers } from './references.ts'

/** The part of a record that does not depend on the caller or the moment: its computed fields and the closing brace follow it. */
export interface CachedRecord {
  readonly n: number
  readonly id: string
  /** The name, if no two records of the resource have the same one. */
  readonly name: string | undefined
  /** JSON in UTF-8 from the opening brace on: as bytes, because lists then copy it instead of building and encoding text. */
  readonly bytes: Buffer
  /** The position in `bytes` at which the members after `_links` begin; each has a comma before it. */
  readonly membersAt: number
  /** The positions after `membersAt` at which the record differs for compatible clients. */
  readonly differences: readonly FormDifference[]
  /** The columns that its computed fields depend on. */
  readonly computedInput: ComputedInput
}

/** The parts that records are rendered with. */
export interface RenderParts {
  readonly behaviors: Behaviors
}

/** Finds what records show of those of another resource that they refer to; ids without a record are absent in the result. */
export type FindReferences = (plural: string, ids: ReadonlySet<string>) => Promise<ReadonlyMap<string, Reference>>

/** Renders rows for the cache, in their order. */
export async function renderCachedRecords(
  parts: RenderParts,
  context: ReadContext,
  resource: AnyResource,
  rows: readonly AnyRow[],
  find: FindReferences = (plural, ids) => findReferences(context.db, plural, ids),
): Promise<CachedRecord[]> {
  if (rows.length === 0) return []
  const plan = getCompiledResource(resource.plural).recordPlan
  const references = await loadReferences(plan, rows, find)
  const derived = await parts.behaviors.get(resource).deriveFields?.(context, rows)
  const hasUniqueName = resource.fields.name?.options.unique === true
  return rows.map((row, at) => {
    const links = `{"_links":${plan.links(row)}`
    return {
      n: row.n,
      id: row.id,
      name: hasUniqueName ? (row.name as string) : undefined,
      ...encodeForms(links + renderStoredMembers(plan, row, references, derived?.[at])),
      membersAt: Buffer.byteLength(links),
      computedInput: toComputedInput(resource, row),
    }
  })
}

function toComputedInput(resource: AnyResource, row: AnyRow): ComputedInput {
  const columns: Record<string, string | number | null> = {}
  for (const name of resource.computedFrom) columns[name] = row[name] ?? null
  return { id: row.id, ...columns }
}

/** JSON text of the reference to a cached record with a unique name. */
export function renderReferenceTo(resource: AnyResource, { id, name = '', bytes, membersAt }: CachedRecord): string {
  return bytes.toString('utf8', 0, membersAt) + renderReferenceMembers(resource, id, name)
}

async function loadReferences(
  plan: RecordPlan,
  rows: readonly AnyRow[],
  find: FindReferences,
): Promise<ReferencesById> {
  const idsByResource = new Map<string, Set<string>>()
  for (const { resource, idsOf } of plan.targets) {
    let ids = idsByResource.get(resource)
    if (!ids) {
      ids = new Set()
      idsByResource.set(resource, ids)
    }
    for (const row of rows) for (const id of idsOf(row)) ids.add(id)
  }
  const references = new Map<string, ReadonlyMap<string, Reference>>()
  for (const [resource, ids] of idsByResource) {
    if (ids.size > 0) references.set(resource, await find(resource, ids))
  }
  return references
}

function renderStoredMembers(
  plan: RecordPlan,
  row: AnyRow,
  references: ReferencesById,
  derived: Readonly<Record<string, unknown>> | undefined,
): string {
  let text = ''
  for (const member of plan.members) text += member(row, references)
  return derived ? text + renderComputedFields(plan.derived, derived) : text
}

/**
 * Computed members as marked text (`JsonForm`), each with a comma before it; only those that are declared, and not those that are
 * undefined.
 * @param only the members to show, if not all
 */
export function renderComputedFields(
  declared: readonly ComputedMember[],
  values: Readonly<Record<string, unknown>>,
  only?: readonly string[],
): string {
  let text = ''
  for (const { name, key } of declared) {
    const value = values[name]
    if (value !== undefined && (!only || only.includes(name))) text += key + toJsonText(value)
  }
  return text
}
