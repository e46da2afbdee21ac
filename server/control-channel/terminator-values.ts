// Values of terminators as messages hold them.
import { RequestRefusedError } from '../../src/network/client-requests/request-refused.ts'
import type { PeerData } from '../../src/network/routers/router-connection.ts'
import type { Precedence } from '../../src/network/terminators/terminator-directory.ts'
import { MAX_ENTRIES, MAX_ENTRY_BYTES } from './header-values.ts'

const PRECEDENCES: readonly Precedence[] = ['default', 'required', 'failed']

/** The precedence with this number. @throws RequestRefusedError if there is none */
export function parsePrecedence(code: number): Precedence {
  const precedence = PRECEDENCES[code]
  if (precedence === undefined)
    throw new RequestRefusedError('invalid-precedence', `no precedence has the code ${code}`)
  return precedence
}

/** The number of a precedence. */
export function encodePrecedence(precedence: string): number {
  return Math.max(0, PRECEDENCES.indexOf(precedence as Precedence))
}

/**
 * Peer data from a map whose keys are the decimal digits of header ids.
 * @throws RequestRefusedError if it has more entries, or longer ones, than a header can carry to the other end
 */
export function parsePeerData(values: Readonly<Record<string, Uint8Array>>): PeerData {
  const entries = Object.entries(values)
  if (entries.length > MAX_ENTRIES)
    throw new RequestRefusedError('other', `the peer data has more than ${MAX_ENTRIES} entries`)
  if (entries.some(([, value]) => value.length > MAX_ENTRY_BYTES))
    throw new RequestRefusedError('other', `an entry of the peer data has more than ${MAX_ENTRY_BYTES} bytes`)
  return new Map(entries.map(([id, value]) => [Number(id), Buffer.from(value)]))
}
