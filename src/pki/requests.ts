// Parses certificate signing requests (RFC 2986) and checks that the controller accepts them.
import type { KeyObject } from 'node:crypto'
import { errors } from '../foundation/errors.ts'
import { findKeyObjection, isSignedBy, publicKeyFromSpki } from './algorithms.ts'
import { DerError, DerReader } from './der.ts'
import { assertReadableName } from './names.ts'
import { parseSinglePemBlock } from './pem.ts'

// RFC 2986 §4.1: [0] attributes.
const ATTRIBUTES = 0xa0
const BOOLEAN = 0x01
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17'

// RFC 5280 §4.2.1.6: [1] rfc822Name, [2] dNSName, [6] uniformResourceIdentifier, [7] iPAddress.
const TEXT_NAMES: ReadonlySet<number> = new Set([0x81, 0x82, 0x86])
const IP_ADDRESS = 0x87

// A router names its hosts. Certificates are shown, sent and stored often, so they must stay small.
const MAX_ALTERNATIVE_NAMES_BYTES = 4096

export interface SigningRequest {
  /** DER of the subject name, which the certificate repeats. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Buffer
  readonly publicKey: KeyObject
  /** DER of the subject alternative names that it asks for; absent if it asks for none. Only routers are given them. */
  readonly alternativeNames?: Buffer
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
    const alternativeNames = readAlternativeNames(inner)
    return { subject, publicKeyInfo, publicKey, ...(alternativeNames ? { alternativeNames } : {}) }
  } catch (error) {
    if (error instanceof Error && error.name === 'ControllerError') throw error
    throw errors.COULD_NOT_PROCESS_CSR({ message: 'it cannot be read' }, { cause: error })
  }
}

/**
 * Reads the subject alternative names (RFC 5280 §4.2.1.6) among the attributes of a request (RFC 2985 §5.4.2).
 * @param info what follows the public key
 */
function readAlternativeNames(info: DerReader): Buffer | undefined {
  if (info.peekTag() !== ATTRIBUTES) return undefined
  const attributes = new DerReader(info.next().content)
  while (!attributes.isAtEnd) {
    const attribute = attributes.sequence()
    if (attribute.oid() !== EXTENSION_REQUEST) continue
    const extensions = attribute.set().sequence()
    while (!extensions.isAtEnd) {
      const extension = extensions.sequence()
      if (extension.oid() !== SUBJECT_ALTERNATIVE_NAME) continue
      if (extension.peekTag() === BOOLEAN) extension.next()
      const names = extension.next().content
      assertGeneralNames(names)
      return names
    }
  }
  return undefined
}

/** @throws DerError unless it is a list of e-mail addresses, host names, URIs and IP addresses of reasonable length */
function assertGeneralNames(bytes: Buffer): void {
  if (bytes.length > MAX_ALTERNATIVE_NAMES_BYTES) throw new DerError('the alternative names are too long')
  const names = new DerReader(bytes).sequence()
  while (!names.isAtEnd) {
    const { tag, content } = names.next()
    const isValid = tag === IP_ADDRESS ? content.length === 4 || content.length === 16 : TEXT_NAMES.has(tag)
    if (!isValid) throw new DerError('an alternative name is of a kind that is not supported')
    // Routers recognize API sessions by such names.
    if (/^spiffe:/i.test(content.toString('latin1'))) throw new DerError('a SPIFFE id is given by the controller only')
  }
}

function signingRequestError(message: string) {
  return errors.COULD_NOT_PROCESS_CSR({ message })
}
