// Messages about circuits: requests for one, the results of routes, and faults.
import { ContentType } from '../content-types.ts'
import { type MessageHandlers, refuseByError, refuseByText } from './message-handler.ts'

/** Requests for circuits, and what becomes of them. */
export const circuitHandlers: MessageHandlers = [
  [ContentType.CIRCUIT_REQUEST, refuseByText(ContentType.CIRCUIT_FAILED)],
  [ContentType.CREATE_CIRCUIT, refuseByError],
  [ContentType.CREATE_TUNNEL_CIRCUIT_V2, refuseByError],
]
