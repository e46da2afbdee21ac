// Reads the certificates of an authority that an operator brings.
import { X509Certificate } from 'node:crypto'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import { findKeyObjection } from '../../pki/algorithms.ts'
import { isWithinDates, readNotAfter, readNotBefore, readPublicKey } from '../../pki/certificates.ts'
import { findAuthorityObjection, MAX_ANCHOR_RSA_BITS } from '../../pki/chains.ts'
import { parsePemBlocks } from '../../pki/pem.ts'

/** The certificate of an authority, and others that its PEM text contains. */
export interface AuthorityCertificates {
  readonly anchor: X509Certificate
  /** Certificates between those that clients present and the anchor. They are not trusted by themselves. */
  readonly intermediates: readonly X509Certificate[]
}

// Every sign-in by a certificate of the authority considers these certificates.
const MAX_PEM_CHARACTERS = 64 * 1024
const MAX_CERTIFICATES = 10

/** Parses the PEM text of an authority that was accepted. The first certificate is the authority. */
export function parseAuthorityCertificates(pem: string): AuthorityCertificates {
  const [anchor, ...intermediates] = parsePemBlocks(pem).map(({ bytes }) => new X509Certificate(bytes))
  if (!anchor) throw new Error('the PEM text of an authority contains no certificate')
  return { anchor, intermediates }
}

/**
 * Parses the PEM text of a new authority, and returns its certificate.
 * @throws COULD_NOT_VALIDATE, or CERTIFICATE_IS_NOT_CA, if it cannot be an authority
 */
export function readAuthorityCertificate(pem: string, now: Instant): X509Certificate {
  if (pem.length > MAX_PEM_CHARACTERS) throw certificateError(`must have at most ${MAX_PEM_CHARACTERS} characters`)
  const blocks = parsePemBlocks(pem)
  if (blocks.length === 0 || blocks.some(({ label }) => label !== 'CERTIFICATE'))
    throw certificateError('must be a PEM certificate, which others may follow')
  if (blocks.length > MAX_CERTIFICATES) throw certificateError(`must hold at most ${MAX_CERTIFICATES} certificates`)
  const { anchor, intermediates } = parse(pem)
  requireUsable(anchor, '', now)
  // Chains are built over them, and whatever one of them lacks would only show when a client signs in.
  for (const [at, each] of intermediates.entries()) requireUsable(each, `contains certificate ${at + 2}, which `, now)
  return anchor
}

/** @param subject how the reason begins: nothing if it is about the authority itself */
function requireUsable(certificate: X509Certificate, subject: string, now: Instant): void {
  const unsuitability = findAuthorityObjection(certificate)
  if (unsuitability)
    throw errors.CERTIFICATE_IS_NOT_CA({ field: 'certPem', reason: `${subject}cannot be used: ${unsuitability}` })
  // Issuers are looked up by name.
  if (!certificate.subject) throw certificateError(`${subject}must name its subject`)
  const objection = findKeyObjection(readPublicKey(certificate), MAX_ANCHOR_RSA_BITS)
  if (objection) throw certificateError(`${subject}has a key that is not accepted: ${objection}`)
  if (isWithinDates(certificate, now)) return
  const [begin, end] = [readNotBefore(certificate), readNotAfter(certificate)]
  if (end < now) throw certificateError(`${subject}expired at ${toIsoTime(end)}`)
  throw certificateError(
    begin > now ? `${subject}is not valid before ${toIsoTime(begin)}` : `${subject}has no valid dates`,
  )
}

function parse(pem: string): AuthorityCertificates {
  try {
    return parseAuthorityCertificates(pem)
  } catch (cause) {
    throw errors.COULD_NOT_VALIDATE({ field: 'certPem', reason: 'cannot be parsed' }, { cause })
  }
}

function certificateError(reason: string) {
  return invalidError('certPem', reason)
}

/**
 * The form in which the names of issuers and subjects are compared (RFC 5280 §7.1: without regard to case and repeated
 * blanks). @param name as node:crypto writes it
 */
export function toNameKey(name: string): string {
  return name.replace(/\s+/g, ' ').toLowerCase()
}
