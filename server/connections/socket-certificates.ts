// The certificates that the client of a connection presented.
import type { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { computeFingerprint, type EncodedCertificate, readNotAfter, readNotBefore } from '../../src/pki/certificates.ts'
import { MAX_PRESENTED_CERTIFICATES } from '../../src/pki/chains.ts'
import { parseCertificate } from '../../src/pki/parsed-certificates.ts'
import type { CertificatePrint, PeerCertificates } from '../../src/pki/peer-certificates.ts'
import { getConnection } from './http-connection.ts'

// OpenSSL's result of a path that ends at its first certificate: none of the others is its issuer.
const NO_ISSUER_PRESENTED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'
// OpenSSL's result of a longer path that has no other fault but that it ends at no authority that OpenSSL knows: it knows none.
const ISSUER_PRESENTED = 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'

// The memory that OpenSSL allocates for a certificate; see parsed-certificates.ts.
const CERTIFICATE_BYTES = 8_000
/** How much memory may be lost to `getPeerX509Certificate` as long as the process runs, by known clients and by others. */
const lossBudgets = { known: 8 * 1024 * 1024, unknown: 8 * 1024 * 1024 }

/**
 * The certificates of the client of a connection. They are read by `getPeerX509Certificate` only if nothing else helps: it takes the
 * other certificates from the connection and does not free them, so that any client could fill the memory.
 */
export class SocketCertificates implements PeerCertificates {
  readonly #socket: TLSSocket
  #own: EncodedCertificate | undefined
  #all: readonly X509Certificate[] | undefined

  constructor(socket: TLSSocket) {
    this.#socket = socket
  }

  get own(): EncodedCertificate | undefined {
    if (!this.#own) {
      // Without `true`, it reads one certificate only.
      const raw = this.#socket.getPeerCertificate?.()?.raw
      this.#own = raw && { raw }
    }
    return this.#own
  }

  get ownPrint(): CertificatePrint | undefined {
    const connection = getConnection(this.#socket)
    connection.ownPrint ??= this.#readOwnPrint()
    return connection.ownPrint
  }

  get isIssuerPresented(): boolean {
    return (this.#socket.authorizationError as unknown) === ISSUER_PRESENTED
  }

  get isPresentedAlone(): boolean {
    return (this.#socket.authorizationError as unknown) === NO_ISSUER_PRESENTED
  }

  get isResumed(): boolean {
    return this.#socket.isSessionReused?.() ?? false
  }

  readOwn(): X509Certificate | undefined {
    return this.own && parseCertificate(this.own.raw)
  }

  readAll(): readonly X509Certificate[] {
    this.#all ??= this.#readAll()
    return this.#all
  }

  readEvery(isKnown: boolean): readonly X509Certificate[] | undefined {
    const connection = getConnection(this.#socket)
    if (connection.takenCertificates) return connection.takenCertificates
    const share = isKnown ? 'known' : 'unknown'
    if (lossBudgets[share] <= 0) return undefined
    const certificates: X509Certificate[] = []
    let next = this.#socket.getPeerX509Certificate?.()
    for (let count = 0; next; count++) {
      if (count <= MAX_PRESENTED_CERTIFICATES) certificates.push(parseCertificate(next.raw))
      if (count > 0) lossBudgets[share] -= CERTIFICATE_BYTES + next.raw.length
      next = next.issuerCertificate
    }
    connection.takenCertificates = certificates
    return certificates
  }

  #readOwnPrint(): CertificatePrint | undefined {
    const own = this.readOwn()
    return own && { fingerprint: computeFingerprint(own), notBefore: readNotBefore(own), notAfter: readNotAfter(own) }
  }

  #readAll(): readonly X509Certificate[] {
    const { takenCertificates } = getConnection(this.#socket)
    if (takenCertificates) return takenCertificates
    if (this.isPresentedAlone || this.isResumed) {
      const own = this.readOwn()
      return own ? [own] : []
    }
    const certificates: X509Certificate[] = []
    let next: DetailedPeerCertificate | undefined = this.#socket.getPeerCertificate?.(true)
    // One more than is accepted, so that too many are told from as many as are allowed.
    while (next?.raw && certificates.length <= MAX_PRESENTED_CERTIFICATES) {
      certificates.push(parseCertificate(next.raw))
      // A certificate that names itself as its issuer ends the path.
      next = next.issuerCertificate === next ? undefined : next.issuerCertificate
    }
    return certificates
  }
}
