// Refuses a plan that deletes what other records still use: the controller refuses such a deletion when it is made.
import { setImmediate } from 'node:timers/promises'
import type { Mention } from '../../definitions/model/columns.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { invalidError } from '../../foundation/errors.ts'
import { find } from '../../storage/entities/entities.ts'
import {
  findMentioningIds,
  getDeletionRule,
  isMentioning,
  listMentionsByRule,
  readNames,
} from '../../storage/entities/mentions.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { FileResource } from './file-resources.ts'
import type { Planning } from './plan-records.ts'
import type { PlanStep } from './plan-step.ts'

/** How many of the records that use one are named. */
const MAX_NAMED_RECORDS = 10

/**
 * Requires that what the steps delete is not in use at their turn. A record in use is a mistake, by the section that does not name it.
 * @param steps in the order in which they are made
 * @param findSection the place of the section of a resource in the request
 */
export async function requireUnusedRecords(
  { context, mistakes }: Pick<Planning, 'context' | 'mistakes'>,
  steps: readonly PlanStep[],
  findSection: (fileResource: FileResource) => string,
): Promise<void> {
  const madeSteps = new Map<string, PlanStep>()
  for (const step of steps) {
    const { fileResource, id, label } = step
    if (step.action === 'delete') {
      for (const mention of listMentionsByRule(fileResource.resource, 'restrict')) {
        const mentioningIds = await findMentioningIds(context, mention, id)
        const userIds: string[] = []
        for (const userId of mentioningIds) {
          const isGone = await goesWithOther(context, mention.from, userId, madeSteps)
          if (!isGone && isInUse(madeSteps.get(toKey(mention.from, userId)), mention, id)) userIds.push(userId)
        }
        if (userIds.length === 0) continue
        const names = await readNames(context, mention.from, userIds.slice(0, MAX_NAMED_RECORDS))
        const users = mention.from.plural.replaceAll('-', ' ')
        const more = userIds.length > MAX_NAMED_RECORDS ? ` and ${userIds.length - MAX_NAMED_RECORDS} more` : ''
        const reason = `does not have ${label}, which ${users} use: ${names.join(', ')}${more}. Name it, or change them in the same file`
        mistakes.add(invalidError(findSection(fileResource), reason))
      }
      await setImmediate()
    }
    madeSteps.set(toKey(fileResource.resource, id), step)
    // Its identity goes with it.
    if (step.action === 'delete' && fileResource.resource.plural === edgeRouters.plural)
      madeSteps.set(toKey(identities, id), step)
  }
}

/** Whether a record still mentions another one after the step of the plan that was made before. */
function isInUse(step: PlanStep | undefined, mention: Mention, id: string): boolean {
  if (!step) return true
  return step.action !== 'delete' && isMentioning(mention, step.after, id)
}

/** Whether a record was deleted together with another one that it belongs to. */
async function goesWithOther(
  context: Pick<ReadContext, 'db'>,
  resource: AnyResource,
  id: string,
  madeSteps: ReadonlyMap<string, PlanStep>,
): Promise<boolean> {
  const owners = getCompiledResource(resource.plural).references.filter((one) => getDeletionRule(one) === 'cascade')
  if (owners.length === 0) return false
  const entity = await find(context, resource, id)
  return owners.some(({ target, column }) => {
    const ownerId = entity?.[column as keyof typeof entity]
    return madeSteps.get(toKey(getResource(target), String(ownerId)))?.action === 'delete'
  })
}

function toKey({ table }: AnyResource, id: string): string {
  return `${table} ${id}`
}
