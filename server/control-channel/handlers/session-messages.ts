// Messages about API sessions and service sessions, and about the clients that use them.
import { ContentType } from '../content-types.ts'
import {
  ApiSessionHeartbeatSchema,
  ConnectEventsSchema,
  RequestClientReSyncSchema,
  ValidateSessionsRequestSchema,
} from '../messages/edge_pb.ts'
import { type MessageHandlers, requireAtMost, withBody } from './message-handler.ts'

// Routers report at most ten thousand sessions in a message.
const MAX_ENTRIES = 10_000
const MAX_REASON_LENGTH = 200

/** The messages of routers about sessions, and their questions about them. */
export const sessionHandlers: MessageHandlers = [
  [
    ContentType.REQUEST_CLIENT_RESYNC,
    withBody(RequestClientReSyncSchema, async ({ controller, router }, { reason }) => {
      const excerpt = reason.slice(0, MAX_REASON_LENGTH)
      const fields = { routerId: router.id, reason: excerpt }
      controller.aggregatedLog.warn(router.id, fields, 'a router asks for all API sessions again')
      await controller.routers.sessionSync.sendAll(router)
    }),
  ],
  [
    ContentType.API_SESSION_HEARTBEAT,
    withBody(ApiSessionHeartbeatSchema, async ({ controller, router }, { tokens }) => {
      requireAtMost(MAX_ENTRIES, tokens, 'tokens')
      await controller.routers.sessionSync.recordActivity(router, tokens)
    }),
  ],
  [
    ContentType.VALIDATE_SESSIONS,
    withBody(ValidateSessionsRequestSchema, async ({ controller, router }, { sessionTokens }) => {
      requireAtMost(MAX_ENTRIES, sessionTokens, 'tokens')
      await controller.routers.sessionSync.validateSessions(router, sessionTokens)
    }),
  ],
  [
    ContentType.CONNECT_EVENTS,
    withBody(ConnectEventsSchema, ({ controller, router }, { events, fullState }) => {
      requireAtMost(MAX_ENTRIES, events, 'identities')
      // An identity that has no session is not connected, whatever a router says.
      const { apiSessions } = controller.auth
      const now = controller.clock.now()
      const ofKnownIdentities = events.filter(({ identityId }) => apiSessions.isSignedIn(identityId, now))
      controller.routers.connected.reportIdentities(router, ofKnownIdentities, fullState)
    }),
  ],
]
