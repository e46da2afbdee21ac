// How routers are told that a request for a client is refused: the numbers of the reasons, and the message that carries them.

import type { RefusalReason } from '../../src/fabric/request-refused.ts'
import type { Channel } from './channel.ts'
import { ContentType } from './content-types.ts'
import { encodeInt32 } from './header-values.ts'
import type { Message } from './message.ts'

const ERROR_CODE = 1014

const INTERNAL = 1

/** The codes of the edge protocol. */
const CODES: Readonly<Record<RefusalReason, number>> = {
  'unknown-api-session': 2,
  'unknown-session': 3,
  'wrong-session-type': 4,
  'router-not-permitted': 5,
  'unknown-service': 6,
  'tunneling-not-enabled': 7,
  'unknown-terminator': 8,
  'invalid-precedence': 9,
  'invalid-cost': 10,
  'encryption-data-missing': 11,
  'id-conflict': INTERNAL,
  busy: INTERNAL,
  other: INTERNAL,
}

/** Replies that a request is refused, and why. */
export function sendRefusal(
  channel: Channel,
  replyTo: Message,
  { reason, message }: { readonly reason: RefusalReason; readonly message: string },
): void {
  const headers = [[ERROR_CODE, encodeInt32(CODES[reason])]] as const
  channel.send(ContentType.ERROR, Buffer.from(message), { headers, replyTo })
}
