// Messages by which routers make, change and remove the terminators of the hosts connected to them.
import { ContentType } from '../content-types.ts'
import { type MessageHandlers, refuseByError, refuseByResult } from './message-handler.ts'

/** Requests about terminators. */
export const terminatorHandlers: MessageHandlers = [
  [ContentType.CREATE_TERMINATOR, refuseByResult],
  [ContentType.REMOVE_TERMINATOR, refuseByResult],
  [ContentType.UPDATE_TERMINATOR, refuseByResult],
  [ContentType.CREATE_EDGE_TERMINATOR, refuseByError],
  [ContentType.REMOVE_EDGE_TERMINATOR, refuseByError],
]
