// Parses certificate signing requests (RFC 2986) and checks that the controller accepts them.
import type { KeyObject } from 'node:crypto'
import { errors } from '../errors.ts'
import { findKeyObjection, isSignedBy, publicKeyFromSpki } from './algorithms.ts'
import { DerReader } from './der.ts'
import { assertReadableName } from './names.ts'
import { parseSinglePemBlock } from './pem.ts'

export interface SigningRequest {
  /** DER of the subject name, which the certificate repeats. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Buffer
  readonly publicKey: KeyObject
}

/**
 * Parses a PEM request.
 * @throws COULD_NOT_PROCESS_CSR unless it is exactly one block, signed by its own key, with a key of an accepted type and size
 */
export function readSigningRequest(pem: string): SigningRequest {
  const block = parseSinglePemBlock(pem)
  if (!block) throw signingRequestError('it must be exactly one PEM block')
  return parseDer(block.bytes)
}

function parseDer(bytes: Buffer): SigningRequest {
  try {
    const whole = new DerReader(bytes)
    const outer = whole.sequence()
    const info = outer.next()
    const algorithm = outer.sequence().oid()
    const signature = outer.bits()
    if (!whole.isAtEnd || !outer.isAtEnd) throw signingRequestError('data follows its signature')
    const inner = new DerReader(info.content)
    inner.next() // version
    const subject = inner.next().bytes
    assertReadableName(subject)
    const publicKeyInfo = inner.next().bytes
    const publicKey = publicKeyFromSpki(publicKeyInfo)
    // Comes before the signature check, because checking with a very large key costs too much.
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
