// The certificates that a TLS client presents, read only as far as they are needed.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import type { EncodedCertificate } from './certificates.ts'

/** The part of a certificate that requests depend on whose token is bound to it. */
export interface CertificatePrint {
  /** SHA-1 of the DER, lower-case hex. */
  readonly fingerprint: string
  readonly notBefore: Instant
  readonly notAfter: Instant
}

/** The certificates of a TLS client. The handshake has proven the key of its own; nothing else is verified. */
export interface PeerCertificates {
  /** The client's own certificate; undefined if it presented none. */
  readonly own: EncodedCertificate | undefined
  /** The print of the client's own certificate, which is read once for a connection; undefined if it presented none. */
  readonly ownPrint: CertificatePrint | undefined
  /**
   * Whether the TLS library built a path from the own certificate over at least one other, verified the signatures on it, and
   * found no fault but that the issuer of the last one is unknown.
   */
  readonly isIssuerPresented: boolean
  /** Whether the client presented no issuer of its own certificate, as far as the TLS library could tell. */
  readonly isPresentedAlone: boolean
  /** Whether the client resumed a session: then only its own certificate is left, and the properties above are those of the first handshake. */
  readonly isResumed: boolean
  /** Parses the client's own certificate. */
  readOwn(): X509Certificate | undefined
  /**
   * Parses the own certificate and above it the path through the others, as far as their names lead; the path ends early if an
   * issuer was sent last while others were left. Reading the others from a connection takes a tenth of a handshake.
   */
  readAll(): readonly X509Certificate[]
  /**
   * Parses the own certificate and all others in the order in which they were sent, whatever it is. Node.js does not free the
   * memory that this takes, so it is limited. @param isKnown whether the client has proven to be one that is known here: clients
   * that are not have a share of their own. @returns undefined if the share is used up
   */
  readEvery(isKnown: boolean): readonly X509Certificate[] | undefined
}
