// An authority that an operator brought, as sign-ins and enrollments consult it.
import type { X509Certificate } from 'node:crypto'
import type { cas } from '../../definitions/resources/cas.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { parseAuthorityCertificates, toNameKey } from './authority-certificates.ts'

export type CertificateAuthority = Entity<typeof cas>

type AuthorityCertificates = Readonly<Record<'anchors' | 'intermediates', readonly X509Certificate[]>>

const BEGIN = '-----BEGIN'

export class RegisteredAuthority {
  readonly record: CertificateAuthority
  /** The names that certificates below it may have as their issuer: its own, or that of an intermediate that came with it. */
  readonly issuerNames: readonly string[]
  #certificates: AuthorityCertificates | undefined

  constructor(record: CertificateAuthority) {
    this.record = record
    this.issuerNames = hasIntermediates(record)
      ? [record.subject, ...this.intermediates.map(({ subject }) => toNameKey(subject ?? ''))]
      : [record.subject]
  }

  /** Chains end at the first certificate only, because that is the one whose key the operator has proven to hold. */
  get anchors(): readonly X509Certificate[] {
    return this.#parsed.anchors
  }

  /** The same, although the anchor may be an intermediate: the operator chose it. */
  get roots(): readonly X509Certificate[] {
    return this.anchors
  }

  get intermediates(): readonly X509Certificate[] {
    return this.#parsed.intermediates
  }

  /** Parsed when a certificate first needs it, because most authorities are used rarely. */
  get #parsed(): AuthorityCertificates {
    if (!this.#certificates) {
      const { anchor, intermediates } = parseAuthorityCertificates(this.record.certPem)
      this.#certificates = { anchors: [anchor], intermediates }
    }
    return this.#certificates
  }
}

/** Told without parsing, because a start reads all authorities. */
function hasIntermediates({ certPem }: CertificateAuthority): boolean {
  return certPem.indexOf(BEGIN) !== certPem.lastIndexOf(BEGIN)
}
