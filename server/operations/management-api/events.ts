// The stream of events: what changes and happens, as it happens (HTML, Server-sent events).
import { refreshCaller } from '../../../src/authentication/api-sessions/callers.ts'
import type { Rights } from '../../../src/definitions/permissions/rights.ts'
import { type EventType, eventTypes } from '../../../src/definitions/resources/event-types.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { WatcherRight } from '../../../src/maintenance/events/watcher.ts'
import type { Caller } from '../../../src/storage/transactions/context.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { rawResponse } from '../../api/responses.ts'

const cursor = { type: 'string', maxLength: 100 } as const

export const eventOperations: readonly AnyOperation[] = [
  defineOperation({
    apis: ['management'],
    topic: 'events',
    isOwn: true,
    id: 'watchEvents',
    method: 'GET',
    path: '/controller/events',
    summary: 'Streams events while they happen, as server-sent events: what the audit records, and the network does.',
    access: { permission: 'event.read', grantedTo: 'administrator', isFiltered: true },
    query: {
      type: {
        schema: { type: 'string', enum: eventTypes, description: 'Only events of these types. Default: all.' },
        isMultiple: true,
      },
      subject: {
        schema: {
          type: 'string',
          description: 'Only events of a resource, such as services, or of the record with this id.',
        },
      },
      since: {
        schema: {
          ...cursor,
          description: 'The cursor of an event: the stream continues behind it. Default: from now on.',
        },
      },
    },
    headers: {
      'last-event-id': {
        schema: { ...cursor, description: 'The same, as clients of event streams send it when they connect again.' },
      },
    },
    returns: { kind: 'raw', contentType: 'text/event-stream' },
    // A command on a data directory has no events to watch; there may be too many watchers.
    errorStatuses: [400],
    hasNoTimeout: true,
    async run(call) {
      const { query, headers, controller } = call
      const types = query.type as readonly EventType[] | undefined
      const since = (headers['last-event-id'] as string | undefined) ?? (query.since as string | undefined)
      const selection = { types, subject: query.subject as string | undefined }
      const stream = await controller.events.watch(toRight(call), selection, since)
      return rawResponse('text/event-stream', stream, { 'cache-control': 'no-store' })
    },
  }),
]

/** The right of the caller, as it is at each moment. @throws COULD_NOT_VALIDATE in an offline command */
export function toRight({ context: { caller, clock }, controller, accessToken }: Call): WatcherRight {
  if (caller.kind !== 'identity')
    throw errors.COULD_NOT_VALIDATE({ message: 'only a running controller has events to watch' })
  const { auth, openIdConnect } = controller
  const { apiSessionId, identityId: ownerId } = caller
  return {
    ownerId,
    findRights() {
      const now = clock.now()
      if (accessToken && (accessToken.expiresAt <= now || openIdConnect.revokedTokens.has(accessToken.jti)))
        return undefined
      return findWatcherRights(refreshCaller(auth, caller, now))
    },
    noteActivity() {
      auth.apiSessions.useById(apiSessionId, clock.now())
    },
  }
}

function findWatcherRights(caller: Caller): Rights | undefined {
  if (caller.kind !== 'identity' || caller.isPartial) return undefined
  return caller.rights.readsAnything ? caller.rights : undefined
}
