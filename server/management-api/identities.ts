// What administrators do with identities beyond their records: disable, enable, trace, take away a second factor.
import { disableIdentity, enableIdentity } from '../../src/auth/disabling.ts'
import { MAX_DURATION_MS, toIsoTime } from '../../src/clock.ts'
import { parseDuration } from '../../src/config.ts'
import { invalidError } from '../../src/errors.ts'
import { newToken } from '../../src/ids.ts'
import { identities } from '../../src/resources/identities.ts'
import { traceChannels } from '../../src/routers/traces.ts'
import { f } from '../../src/schema/fields.ts'
import { flag, objectOf, text, time } from '../../src/schema/json-schema.ts'
import { DURATION_MINUTES } from '../../src/schema/ranges.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../operation.ts'
import { requireRow } from '../resource-operations.ts'
import { dataResponse, emptyResponse } from '../responses.ts'

const common = { apis: ['management'], topic: 'identities' } as const
const UPDATE = { permission: 'identity.update', grantedTo: 'administrator' } as const

interface TraceSpec {
  readonly enabled: boolean
  readonly duration?: string
  readonly traceId?: string
  readonly channels?: readonly string[]
}

export const identityOperations: readonly AnyOperation[] = [
  defineOperation<{ durationMinutes: number }>({
    ...common,
    id: 'disableIdentity',
    method: 'POST',
    path: '/identities/:id/disable',
    summary: 'Keeps an identity out, for a time or until it is enabled, and ends its sessions.',
    access: UPDATE,
    body: readFieldsBody({
      durationMinutes: f.int({ ...DURATION_MINUTES, required: true, summary: 'For how long; 0 is without an end.' }),
    }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await context.write((tx) => disableIdentity(controller.entities, tx, params.id ?? '', body.durationMinutes))
      return emptyResponse()
    },
  }),
  defineOperation({
    ...common,
    id: 'enableIdentity',
    method: 'POST',
    path: '/identities/:id/enable',
    summary: 'Lets a disabled identity in again.',
    access: UPDATE,
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await context.write((tx) => enableIdentity(controller.entities, tx, params.id ?? ''))
      return emptyResponse()
    },
  }),
  defineOperation<TraceSpec>({
    ...common,
    id: 'updateIdentityTracing',
    method: 'PUT',
    path: '/identities/:id/trace',
    summary: 'Begins, or ends, logging in detail what an identity connects to.',
    incomplete: 'keeps the trace, but nothing writes to it',
    access: UPDATE,
    body: readFieldsBody({
      enabled: f.bool({ summary: 'Whether to trace; without it tracing ends.' }),
      duration: f.text({ summary: 'For how long, such as 10m or 1h30m.' }),
      traceId: f.text({ summary: 'What the log calls the trace; made up where it is not given.' }),
      channels: f.strings({ summary: `Which of ${traceChannels.join(', ')}; all of them unless said otherwise.` }),
    }),
    returns: {
      kind: 'data',
      schema: objectOf({ enabled: flag, traceId: text, until: time }),
    },
    async run({ controller, context, params, body }) {
      const { id } = await requireRow(context, identities, params.id)
      const { traces } = controller.routers
      const now = context.clock.now()
      if (!body.enabled) {
        const traceId = traces.stop(id)?.traceId ?? (body.traceId || newToken())
        return dataResponse({ enabled: false, traceId, until: toIsoTime(now) })
      }
      const duration = parseDuration(body.duration ?? '') ?? 0
      if (duration === 0 || duration > MAX_DURATION_MS) {
        throw invalidError('duration', 'must be a time such as 10m or 1h30m', body.duration)
      }
      const trace = {
        traceId: body.traceId || newToken(),
        until: now + duration,
        channels: parseTraceChannels(body.channels),
      }
      traces.start(id, trace, now)
      return dataResponse({ enabled: true, traceId: trace.traceId, until: toIsoTime(trace.until) })
    },
  }),
  defineOperation({
    ...common,
    id: 'removeIdentityMfa',
    method: 'DELETE',
    path: '/identities/:id/mfa',
    summary: "Takes away an identity's second factor.",
    incomplete: 'finds no second factor, because none can be enrolled',
    access: UPDATE,
    returns: { kind: 'empty' },
    async run({ context, params }) {
      await requireRow(context, identities, params.id)
      return emptyResponse()
    },
  }),
]

function parseTraceChannels(named: readonly string[] = []) {
  const requestedChannels = traceChannels.filter((channel) => named.includes(channel))
  return new Set(requestedChannels.length === 0 || named.includes('all') ? traceChannels : requestedChannels)
}
