// Plans what is deleted so that a network has nothing but what its file names.
import { setImmediate } from 'node:timers/promises'
import { hasUsableAdministrator } from '../../authentication/administrators/administrators.ts'
import type { AnyRow } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { invalidError } from '../../foundation/errors.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import { resolveSubtype, selectRows } from '../../storage/entities/subtypes.ts'
import type { FileResource } from './file-resources.ts'
import { InitialValues } from './initial-values.ts'
import type { Planning } from './plan-records.ts'
import type { DeleteStep, PlannedValues } from './plan-step.ts'
import { loadNames } from './record-names.ts'

/** A record that the file does not name, and that is not deleted nevertheless. */
export interface RetainedRecord {
  readonly fileResource: FileResource
  readonly label: string
  readonly reason: string
}

export interface PlannedDeletions {
  readonly steps: readonly DeleteStep[]
  readonly retained: readonly RetainedRecord[]
}

const PAGE = 200

/** @throws COULD_NOT_VALIDATE if the file refers to a record that it does not have, so that it would be deleted */
export async function planDeletions(planning: Planning): Promise<PlannedDeletions> {
  const steps: DeleteStep[] = []
  const retained: RetainedRecord[] = []
  for (const [fileResource, matchedIds] of planning.matchedIds) {
    for await (const step of listUnmatched(planning, fileResource, matchedIds)) {
      const { caller } = planning.context
      const isOwn = caller.kind === 'identity' && caller.identityId === step.id
      if (isOwn) retained.push({ fileResource, label: step.label, reason: 'it is your own identity' })
      else steps.push(step)
    }
  }
  const deletions = await retainAdministrators(planning, { steps, retained })
  for (const { id, label, fileResource } of deletions.steps) {
    const path = planning.referencePaths.get(id)
    const reason = `names ${label}, which would be deleted, because the file does not have it in ${fileResource.resource.plural}`
    if (path !== undefined) throw invalidError(path, reason, label)
  }
  return deletions
}

/** The records of a resource that the file does not have, without those that the controller made. */
async function* listUnmatched(
  { context }: Planning,
  fileResource: FileResource,
  matchedIds: ReadonlySet<string>,
): AsyncGenerator<DeleteStep> {
  const { resource } = fileResource
  let last = 0
  for (;;) {
    const rows = (await selectRows(context.db, resource)
      .selectAll()
      .where('n', '>', last)
      .orderBy('n')
      .limit(PAGE)
      .execute()) as AnyRow[]
    const entities = rows
      .filter((row) => !matchedIds.has(row.id) && resolveSubtype(resource, row) === resource)
      .map((row) => entityFromRow(resource, row) as PlannedValues)
    const initialValues = await InitialValues.load(context, fileResource, entities)
    const unmatched = entities.filter((entity) => !initialValues.isMade(entity))
    const toName = await loadNames(context, fileResource, unmatched)
    for (const before of unmatched) {
      const names = fileResource.identifiedBy.map(({ field, fieldName }) => {
        const value = before[fieldName]
        return field.kind.target && typeof value === 'string' ? toName(field.kind.target, value) : value
      })
      const label = names.filter((name) => name !== null && name !== '').join(', ')
      yield { action: 'delete', fileResource, id: before.id, label, before }
    }
    if (rows.length < PAGE) return
    last = rows.at(-1)?.n as number
    await setImmediate()
  }
}

/** Deletes no administrator if none that could sign in would remain. */
async function retainAdministrators(
  { context, steps }: Planning,
  {
    steps: deletions,
    retained,
  }: { readonly steps: readonly DeleteStep[]; readonly retained: readonly RetainedRecord[] },
): Promise<PlannedDeletions> {
  const isAdministrator = ({ fileResource, before }: DeleteStep) =>
    fileResource.resource.plural === identities.plural && before.isAdmin === true
  const administrators = deletions.filter(isAdministrator)
  if (administrators.length === 0) return { steps: deletions, retained }
  const demotedIds = steps.flatMap((step) =>
    step.action === 'change' && step.before.isAdmin === true && step.after.isAdmin === false ? step.id : [],
  )
  const lostIds = [...administrators.map(({ id }) => id), ...demotedIds]
  if (await hasUsableAdministrator(context, lostIds)) return { steps: deletions, retained }
  const reason = 'no other administrator could sign in'
  return {
    steps: deletions.filter((step) => !isAdministrator(step)),
    retained: [...retained, ...administrators.map(({ fileResource, label }) => ({ fileResource, label, reason }))],
  }
}
