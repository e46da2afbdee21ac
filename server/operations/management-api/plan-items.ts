// The items of a plan, as the management API streams them.
import type { Controller } from '../../../src/controller/controller.ts'
import {
  flag,
  type JsonSchema,
  listOf,
  objectOf,
  requiredObject,
  text,
  whole,
} from '../../../src/definitions/schema/json-schema.ts'
import { computePlanImpact, type PlanImpact } from '../../../src/maintenance/network-file/access-changes.ts'
import { type FileResource, fileResources } from '../../../src/maintenance/network-file/file-resources.ts'
import type { NetworkPlan } from '../../../src/maintenance/network-file/plan.ts'
import { computeDigest } from '../../../src/maintenance/network-file/plan-digest.ts'
import { countUnlisted, listUnlisted } from '../../../src/maintenance/network-file/unlisted-records.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'

const BATCH = 200

export const countProperties = { creates: whole, changes: whole, deletes: whole }

const valueSchema: JsonSchema = { description: 'As the file shows it.' }
const effectSchema = requiredObject({ identities: whole, services: whole, pairs: whole })
export const planItemSchema = objectOf({
  kind: {
    ...text,
    enum: [
      'create',
      'change',
      'delete',
      'clear',
      'retain',
      'gain',
      'loss',
      'unreachable',
      'gate',
      'unmatched',
      'unlisted',
      'summary',
    ],
    description:
      'create, change, delete: of a record. clear: the record names one that is deleted, and loses that reference. retain: the file does not name the record, and it is not deleted. gain, loss: of a right. unreachable: a right without an edge router. gate: a policy that demands less of machines. unmatched: a role that selects no record after the plan. unlisted: the network has the record, the file does not name it, and it stays; only if they are requested. summary: comes last.',
  },
  resource: text,
  name: text,
  members: listOf(
    objectOf({
      name: text,
      before: valueSchema,
      after: valueSchema,
      isDefault: { ...flag, description: 'Whether a new record has the default.' },
    }),
  ),
  reason: text,
  identity: text,
  service: text,
  type: { ...text, enum: ['Dial', 'Bind'] },
  blockedBy: {
    ...listOf(text),
    description: 'Of a gain or a loss that posture blocks at the moment: the posture checks that do not pass.',
  },
  identities: whole,
  remainingChecks: whole,
  role: text,
  near: { ...listOf(text), description: 'Roles that select records, and are similar to one that does not.' },
  digest: {
    ...text,
    description: 'Two plans with the same digest make the same changes, and change access in the same way.',
  },
  ...countProperties,
  resources: {
    ...listOf(
      requiredObject({
        resource: text,
        ...countProperties,
        unlisted: { ...whole, description: 'How many records the file does not name, and the plan does not delete.' },
        hasSection: { ...flag, description: 'Whether the file has a section for the resource.' },
      }),
    ),
    description: 'The same by resource, without those of which there is nothing to say.',
  },
  gains: effectSchema,
  loses: effectSchema,
  blockedGains: effectSchema,
  blockedLosses: effectSchema,
  unreachable: effectSchema,
  sessions: { ...whole, description: 'How many sessions would end.' },
  isComplete: { ...flag, description: 'Whether the access of every identity was compared.' },
})

interface EffectCounts {
  readonly identities: number
  readonly services: number
  readonly pairs: number
}

/** The effects of a plan on the records of a resource, and the number of the other records. */
interface ResourceCounts {
  readonly resource: string
  readonly creates: number
  readonly changes: number
  readonly deletes: number
  readonly unlisted: number
  readonly hasSection: boolean
}

/** The last item. */
export interface PlanSummary {
  readonly kind: 'summary'
  readonly digest: string
  readonly creates: number
  readonly changes: number
  readonly deletes: number
  readonly resources: readonly ResourceCounts[]
  readonly gains: EffectCounts
  readonly loses: EffectCounts
  readonly blockedGains: EffectCounts
  readonly blockedLosses: EffectCounts
  readonly unreachable: EffectCounts
  readonly sessions: number
  readonly isComplete: boolean
}

interface Member {
  readonly name: string
  readonly before?: unknown
  readonly after: unknown
  readonly isDefault?: boolean
}

/** One line of a plan. */
export type PlanItem =
  | {
      readonly kind: 'create' | 'change' | 'delete' | 'clear'
      readonly resource: string
      readonly name: string
      readonly members?: readonly Member[]
    }
  | { readonly kind: 'retain'; readonly resource: string; readonly name: string; readonly reason: string }
  | {
      readonly kind: 'gain' | 'loss' | 'unreachable'
      readonly identity: string
      readonly service: string
      readonly type: 'Dial' | 'Bind'
      readonly blockedBy?: readonly string[]
    }
  | { readonly kind: 'gate'; readonly name: string; readonly identities: number; readonly remainingChecks: number }
  | { readonly kind: 'unlisted'; readonly resource: string; readonly name: string }
  | { readonly kind: 'unmatched'; readonly resource: string; readonly role: string; readonly near: readonly string[] }
  | PlanSummary

interface PlanOptions {
  readonly isPruning: boolean
  /** Whether the records that the file does not name are items. */
  readonly hasUnlisted: boolean
}

export async function* renderPlan(
  controller: Controller,
  context: Context,
  plan: NetworkPlan,
  { isPruning, hasUnlisted }: PlanOptions,
): AsyncGenerator<readonly string[]> {
  const { steps, retained, cleared, unmatchedRoles } = plan
  for (let at = 0; at < steps.length; at += BATCH) yield steps.slice(at, at + BATCH).map(renderStep)
  for (let at = 0; at < cleared.length; at += BATCH) yield cleared.slice(at, at + BATCH).map(renderCleared)
  yield retained.map(({ fileResource, label: name, reason }) =>
    toLine({ kind: 'retain', resource: fileResource.resource.plural, name, reason }),
  )
  const unlistedResources = fileResources.filter((fileResource) => !isPruning || !plan.matchedIds.has(fileResource))
  if (hasUnlisted) yield* renderUnlisted(context, unlistedResources, plan)
  yield unmatchedRoles.map((unmatched) => toLine({ kind: 'unmatched', ...unmatched }))
  const impact = await computePlanImpact(controller, context, steps)
  yield renderAccess(impact)
  const { gains, loses, blockedGains, blockedLosses, unreachable, sessions, isComplete } = impact
  const effects = {
    gains: gains.counts,
    loses: loses.counts,
    blockedGains: blockedGains.counts,
    blockedLosses: blockedLosses.counts,
    unreachable: unreachable.counts,
  }
  const resources = await countByResource(controller, context, unlistedResources, plan)
  const digest = computeDigest(controller.authority.trustDomain, plan, impact)
  yield [toLine({ kind: 'summary', digest, ...countSteps(steps), resources, ...effects, sessions, isComplete })]
}

async function* renderUnlisted(
  context: Context,
  unlistedResources: readonly FileResource[],
  { matchedIds }: NetworkPlan,
): AsyncGenerator<readonly string[]> {
  for (const fileResource of unlistedResources) {
    const { plural: resource } = fileResource.resource
    let batch: string[] = []
    for await (const { label: name } of listUnlisted(context, fileResource, matchedIds.get(fileResource) ?? NO_IDS)) {
      batch.push(toLine({ kind: 'unlisted', resource, name }))
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
    yield batch
  }
}

const NO_IDS: ReadonlySet<string> = new Set()

/** Counts by resource the effects of the plan, and the records that the file does not name. */
async function countByResource(
  { store }: Controller,
  context: Context,
  unlistedResources: readonly FileResource[],
  { steps, matchedIds }: NetworkPlan,
): Promise<ResourceCounts[]> {
  const resources: ResourceCounts[] = []
  for (const fileResource of fileResources) {
    const counts = countSteps(steps.filter((step) => step.fileResource === fileResource))
    const ids = matchedIds.get(fileResource) ?? NO_IDS
    const isUnlisted = unlistedResources.includes(fileResource)
    const unlisted = isUnlisted ? await countUnlisted(store, context, fileResource, ids) : 0
    if (counts.creates + counts.changes + counts.deletes + unlisted === 0) continue
    const hasSection = matchedIds.has(fileResource)
    resources.push({ resource: fileResource.resource.plural, ...counts, unlisted, hasSection })
  }
  return resources
}

export function countSteps(steps: NetworkPlan['steps']) {
  const count = (action: string) => steps.filter((step) => step.action === action).length
  return { creates: count('create'), changes: count('change'), deletes: count('delete') }
}

function renderStep(step: NetworkPlan['steps'][number]): string {
  const { action: kind, fileResource, label: name } = step
  const common = { kind, resource: fileResource.resource.plural, name }
  return toLine('members' in step ? { ...common, members: step.members } : common)
}

function renderCleared({ fileResource, label: name, members }: NetworkPlan['cleared'][number]): string {
  return toLine({ kind: 'clear', resource: fileResource.resource.plural, name, members })
}

function renderAccess({ gains, loses, blockedGains, blockedLosses, unreachable, gates }: PlanImpact): string[] {
  const pairs = (kind: 'gain' | 'loss' | 'unreachable', { pairs: named }: PlanImpact['gains']) =>
    named.map((pair) => ({ kind, ...pair }))
  const items = [
    ...pairs('loss', loses),
    ...pairs('loss', blockedLosses),
    ...pairs('gain', gains),
    ...pairs('gain', blockedGains),
    ...pairs('unreachable', unreachable),
    ...gates.map((gate) => ({ kind: 'gate' as const, ...gate })),
  ]
  return items.map(toLine)
}

function toLine(item: PlanItem): string {
  return JSON.stringify(item)
}
