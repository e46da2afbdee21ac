// Certificate signing requests (RFC 2986): read, and held to what this controller accepts.
import type { KeyObject } from 'node:crypto'
import { errors } from '../errors.ts'
import { findKeyObjection, isSignedBy, publicKeyFromSpki } from './algorithms.ts'
import { DerReader } from './der.ts'
import { assertReadableName } from './names.ts'
import { parseSinglePemBlock } from './pem.ts'

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
  const block = parseSinglePemBlock(pem)
  if (!block) throw signingRequestError('it must be exactly one PEM block')
  return parse(block.bytes)
}

function parse(bytes: Buffer): SigningRequest {
  try {
    const whole = new DerReader(bytes)
    const outer = whole.sequence()
    const info = outer.next()
    const algorithm = outer.sequence().oid()
    const signature = outer.bits()
    if (!whole.isAtEnd || !outer.isAtEnd) throw signingRequestError('something stands after its signature')
    const inner = new DerReader(info.content)
    inner.next() // version
    const subject = inner.next().bytes
    assertReadableName(subject)
    const publicKeyInfo = inner.next().bytes
    const publicKey = publicKeyFromSpki(publicKeyInfo)
    // Before the signature is checked, because a key may be so large that checking costs too much.
    const objection = findKeyObjection(publicKey)
    if (objection) throw signingRequestError(objection)
    if (!isSignedBy(algorithm, publicKey, info.bytes, signature))
      throw signingRequestError('its signature is not that of its own key')
    return { subject, publicKeyInfo, publicKey }
  } catch (error) {
    if (error instanceof Error && error.name === 'ControllerError') throw error
    throw errors.COULD_NOT_PROCESS_CSR({ message: 'it cannot be read' }, { cause: error })
  }
}

function signingRequestError(message: string) {
  return errors.COULD_NOT_PROCESS_CSR({ message })
}
