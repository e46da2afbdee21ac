// Values of terminators as messages hold them.
import { RequestRefusedError } from '../../src/fabric/request-refused.ts'
import type { Precedence } from '../../src/fabric/terminator-directory.ts'
import type { PeerData } from '../../src/routers/router-connection.ts'

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

/** Peer data from a map whose keys are the decimal digits of header ids. */
export function parsePeerData(entries: Readonly<Record<string, Uint8Array>>): PeerData {
  return new Map(Object.entries(entries).map(([id, value]) => [Number(id), Buffer.from(value)]))
}
