// The channel over which OpenZiti's tools watch events.
import { errors } from '../../../src/foundation/errors.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { webSocketResponse } from '../../api/responses.ts'
import { toRight } from '../management-api/events.ts'
import { ToolChannel } from './tool-channel.ts'
import { FABRIC } from './view-operations.ts'

export const eventChannelOperations: readonly AnyOperation[] = [
  defineOperation({
    ...FABRIC,
    id: 'openEventStream',
    topic: 'events',
    method: 'GET',
    path: '/ws-api',
    summary: 'Begins a WebSocket over which tools watch events, each that the caller may read.',
    access: { permission: 'event.read', grantedTo: 'administrator', isFiltered: true },
    returns: { kind: 'raw', contentType: 'application/octet-stream' },
    errorStatuses: [400],
    run(call) {
      if (!call.asksForWebSocket()) throw errors.NOT_SUPPORTED({ message: 'this path is for WebSockets only' })
      const { events, log, membership } = call.controller
      const right = toRight(call)
      const sourceId = membership.ownId ?? 'controller'
      return webSocketResponse((webSocket) => new ToolChannel(webSocket, { events, log, right, sourceId }))
    },
  }),
]
