// Plans what is deleted so that a network has nothing but what its file names.
import { hasUsableAdministrator } from '../../authentication/administrators/administrators.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { FileResource } from './file-resources.ts'
import type { Planning } from './plan-records.ts'
import type { DeleteStep } from './plan-step.ts'
import { listUnlisted } from './unlisted-records.ts'

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

/** A reference of the file to a record that it does not have, so that it would be deleted, is a mistake. */
export async function planDeletions(planning: Planning): Promise<PlannedDeletions> {
  const steps: DeleteStep[] = []
  const retained: RetainedRecord[] = []
  for (const [fileResource, matchedIds] of planning.matchedIds) {
    for await (const { id, label, values } of listUnlisted(planning.context, fileResource, matchedIds)) {
      const step: DeleteStep = { action: 'delete', fileResource, id, label, before: values }
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
    if (path !== undefined) planning.mistakes.add(invalidError(path, reason, label))
  }
  return deletions
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
