// The network as a file: exports what administrators configured, compares it with a file, and applies one.
import { Readable } from 'node:stream'
import type { Controller } from '../../../src/controller/controller.ts'
import type { SizeLimit } from '../../../src/definitions/schema/body-sizes.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import {
  anyObject,
  listOf,
  objectOf,
  requiredObject,
  text,
  typed,
  whole,
} from '../../../src/definitions/schema/json-schema.ts'
import { ControllerError, errors, toPrintable } from '../../../src/foundation/errors.ts'
import { computePlanImpact } from '../../../src/maintenance/network-file/access-changes.ts'
import { applySteps, checkSteps, MAX_RECORDS_PER_TRANSACTION } from '../../../src/maintenance/network-file/apply.ts'
import { exportNetwork, type NetworkSection } from '../../../src/maintenance/network-file/export.ts'
import { type NetworkPlan, planNetwork } from '../../../src/maintenance/network-file/plan.ts'
import { computeDigest } from '../../../src/maintenance/network-file/plan-digest.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { type AnyOperation, defineOperation, readListBody } from '../../api/operation.ts'
import { emptyResponse } from '../../api/responses.ts'
import { streamItems } from '../../responses/list-stream.ts'
import { countProperties, countSteps, planItemSchema, renderPlan } from './plan-items.ts'

const COMMON = { apis: ['management'], topic: 'network', isOwn: true } as const
const READ = { permission: 'network.read', grantedTo: 'administrator' } as const

/** The file has one section for each resource; an export has one for each page. */
const MAX_SECTIONS = 10_000

/** Limits besides that of bytes: without them, a file could take seconds to parse and validate, during which nothing is served. */
const SIZE_LIMITS: readonly SizeLimit[] = [
  { entries: 'sections', maxEach: MAX_SECTIONS, maxInAll: MAX_SECTIONS },
  { entries: 'members of sections', maxEach: 10, maxInAll: 10 * MAX_SECTIONS },
  { entries: 'records', maxEach: 500_000, maxInAll: 500_000 },
  { entries: 'members of records', maxEach: 1_000, maxInAll: 5_000_000 },
  { entries: 'values of members', maxEach: 100_000, maxInAll: 3_000_000 },
]

const RECORDS = 'Records by the members that administrators set, references by name.'
const sectionSchema = requiredObject({
  resource: { ...text, description: 'The plural name of the resource.' },
  records: listOf({ ...anyObject, description: RECORDS }),
})

const readSections = readListBody<NetworkSection>(
  {
    resource: f.text({ required: true, summary: 'The plural name of the resource.' }),
    records: f.json(typed<Record<string, unknown>[]>(listOf(anyObject)), { required: true, summary: RECORDS }),
  },
  { maxItems: MAX_SECTIONS },
)

const PRUNE_PARAMETER = {
  schema: {
    type: 'boolean',
    description: 'Also delete records that the file does not name, of resources that it has.',
  },
} as const

const progressSchema = requiredObject({
  ...countProperties,
  total: {
    ...whole,
    description: 'How many changes there are in all. Fewer are made at the end if it failed or was stopped.',
  },
  failure: {
    ...objectOf({ status: whole, code: text, message: text, field: text, reason: text, value: text }),
    nullable: true,
    description: 'Why the next transaction changed nothing; the changes before it are made.',
  },
})

export const networkFileOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'exportNetwork',
    method: 'GET',
    path: '/controller/network',
    summary: 'Exports everything that administrators configured, by names and without secrets, in a stable order.',
    access: READ,
    returns: { kind: 'data', schema: listOf(sectionSchema), isPage: true },
    run: ({ context }) => streamItems(renderSections(context)),
  }),
  defineOperation<readonly NetworkSection[]>({
    ...COMMON,
    id: 'planNetwork',
    method: 'POST',
    path: '/controller/network/plan',
    summary: 'Shows what applying a file would create, change and delete, and who would gain or lose which access.',
    access: READ,
    query: {
      prune: PRUNE_PARAMETER,
      unlisted: { schema: { type: 'boolean', description: 'Also list the records that the file does not name.' } },
    },
    body: readSections,
    bodyLimit: 'limits.networkFile',
    sizeLimits: SIZE_LIMITS,
    hasNoTimeout: true,
    returns: { kind: 'data', schema: listOf(planItemSchema), isPage: true },
    errorStatuses: [404, 409],
    async run({ controller, context, query, body, socket }) {
      const isStopped = () => socket.destroyed
      const plan = await planNetwork(controller, context, body, { isPruning: query.prune === true, isStopped })
      const dryRun = controller.contexts.create(context.caller, context.origin, true)
      await checkSteps(controller.entities, dryRun, plan.steps, isStopped)
      // The client is gone, and the checks have ended early.
      if (isStopped()) return streamItems(Readable.from([]))
      const options = { isPruning: query.prune === true, hasUnlisted: query.unlisted === true }
      return streamItems(renderPlan(controller, context, plan, options))
    },
  }),
  defineOperation<readonly NetworkSection[]>({
    ...COMMON,
    id: 'applyNetwork',
    method: 'POST',
    path: '/controller/network/apply',
    summary: `Applies a file, in transactions of at most ${MAX_RECORDS_PER_TRANSACTION} records; applying it again continues after a failure.`,
    access: { permission: 'network.update', grantedTo: 'administrator' },
    query: {
      prune: PRUNE_PARAMETER,
      digest: {
        schema: { ...text, description: 'The digest of the plan that is to be applied; 409 if it is another one now.' },
      },
    },
    body: readSections,
    bodyLimit: 'limits.networkFile',
    sizeLimits: SIZE_LIMITS,
    hasNoTimeout: true,
    returns: { kind: 'data', schema: listOf(progressSchema), isPage: true },
    errorStatuses: [404, 409],
    run: ({ controller, context, query, body }) =>
      streamItems(
        applySections(controller, context, body, {
          isPruning: query.prune === true,
          digest: query.digest as string | undefined,
        }),
      ),
  }),
  defineOperation({
    ...COMMON,
    id: 'stopApplyNetwork',
    method: 'POST',
    path: '/controller/network/apply/stop',
    summary: 'Ends the application of a file after its present transaction. What is made stays.',
    access: { permission: 'network.update', grantedTo: 'administrator' },
    query: { digest: { schema: { ...text, description: 'The digest that it is applied with.' }, isRequired: true } },
    returns: { kind: 'empty' },
    errorStatuses: [404],
    run({ controller, query }) {
      if (!controller.applies.stop(String(query.digest)))
        throw errors.NOT_FOUND({ message: 'no plan with that digest is being applied' })
      return emptyResponse()
    },
  }),
]

async function* renderSections(context: Context): AsyncGenerator<readonly string[]> {
  for await (const section of exportNetwork(context)) yield [JSON.stringify(section)]
}

/** Plans and applies a file. What a client can stop begins with the request, so that stopping it early changes nothing. */
async function* applySections(
  controller: Controller,
  context: Context,
  sections: readonly NetworkSection[],
  { isPruning, digest }: { readonly isPruning: boolean; readonly digest: string | undefined },
): AsyncGenerator<readonly string[]> {
  const { signal, end } = controller.applies.begin(digest ?? '')
  try {
    const plan = await planNetwork(controller, context, sections, { isPruning })
    if (digest !== undefined) {
      const impact = await computePlanImpact(controller, context, plan.steps)
      if (digest !== computeDigest(controller.authority.trustDomain, plan, impact)) throw errors.NETWORK_CHANGED()
    }
    yield* renderProgress(controller, context, plan, signal)
  } finally {
    end()
  }
}

/** Renders the changes made so far, after each transaction. If the first one fails, nothing is changed, and the request fails. */
async function* renderProgress(
  { entities }: Controller,
  context: Context,
  { steps }: NetworkPlan,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  let stepCount = 0
  const render = (failure: object | null) => [
    JSON.stringify({ ...countSteps(steps.slice(0, stepCount)), total: steps.length, failure }),
  ]
  try {
    for await (stepCount of applySteps(entities, context, steps, () => signal.aborted)) yield render(null)
  } catch (error) {
    if (stepCount === 0 || !(error instanceof ControllerError)) throw error
    yield render(describeApplyFailure(error))
    return
  }
  if (stepCount === 0) yield render(null)
}

function describeApplyFailure({ status, code, message, publicCause = {} }: ControllerError): object {
  if (!('field' in publicCause))
    return { status, code, message, ...('message' in publicCause ? { reason: publicCause.message } : {}) }
  const { field, reason, value } = publicCause
  return { status, code, message, field, reason, value: toPrintable(value) }
}
