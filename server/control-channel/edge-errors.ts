// How routers are told that a request for a client is refused: the numbers of the reasons, and the message that carries them.

import type { RequestRefusalReason } from '../../src/network/client-requests/request-refused.ts'
import type { Channel } from './channel.ts'
import { ContentType } from './content-types.ts'
import { encodeInt32, encodeText } from './header-values.ts'
import type { ReplyTarget } from './message.ts'

const ERROR_CODE = 1014
const CIRCUIT_ID = 1026

const INTERNAL = 1

/** The codes of the edge protocol. */
export const REFUSAL_CODES: Readonly<Record<RequestRefusalReason, number>> = {
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

interface Refusal {
  readonly reason: RequestRefusalReason
  readonly message: string
  /** The circuit that the request concerns. */
  readonly circuitId?: string | undefined
}

/** The refusal of a request that failed because of the controller. */
export const INTERNAL_FAILURE: Refusal = { reason: 'other', message: 'the controller failed' }

/** Replies that a request is refused, and why. */
export function sendRefusal(channel: Channel, replyTo: ReplyTarget, { reason, message, circuitId }: Refusal): void {
  const headers: [number, Buffer][] = [[ERROR_CODE, encodeInt32(REFUSAL_CODES[reason])]]
  if (circuitId !== undefined) headers.push([CIRCUIT_ID, encodeText(circuitId)])
  channel.send(ContentType.ERROR, Buffer.from(message), { headers, replyTo })
}
