// Certificate signing requests (RFC 2986): read, and held to what this controller accepts.
import type { KeyObject } from 'node:crypto'
import { errors } from '../errors.ts'
import { isSignedBy, keyObjection, publicKeyFrom } from './algorithms.ts'
import { DerReader } from './der.ts'
import { assertReadableName } from './names.ts'
import { onlyPemBlock } from './pem.ts'

export interface SigningRequest {
  /** DER of the subject name, to be copied. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Buffer
  readonly publicKey: KeyObject
}

/**
 * Reads a PEM request: one block, nothing after its final line end, a valid signature of its own, a key that is
 * strong enough and not too large. @throws COULD_NOT_PROCESS_CSR
 */
export function readSigningRequest(pem: string): SigningRequest {
  const block = onlyPemBlock(pem)
  if (!block) throw refused('it must be exactly one PEM block')
  return parse(block.bytes)
}

function parse(bytes: Buffer): SigningRequest {
  try {
    const whole = new DerReader(bytes)
    const outer = whole.sequence()
    const info = outer.next()
    const algorithm = outer.sequence().oid()
    const signature = outer.bits()
    if (!whole.isAtEnd || !outer.isAtEnd) throw refused('something stands after its signature')
    const inner = new DerReader(info.content)
    inner.next() // version
    const subject = inner.next().bytes
    assertReadableName(subject)
    const publicKeyInfo = inner.next().bytes
    const publicKey = publicKeyFrom(publicKeyInfo)
    // Before the signature is checked, because a key may be so large that checking costs too much.
    const objection = keyObjection(publicKey)
    if (objection) throw refused(objection)
    if (!isSignedBy(algorithm, publicKey, info.bytes, signature))
      throw refused('its signature is not that of its own key')
    return { subject, publicKeyInfo, publicKey }
  } catch (error) {
    if (error instanceof Error && error.name === 'ControllerError') throw error
    throw errors.COULD_NOT_PROCESS_CSR({ message: 'it cannot be read' }, { cause: error })
  }
}

function refused(message: string) {
  return errors.COULD_NOT_PROCESS_CSR({ message })
}
