// An authority that an operator brought, as sign-ins and enrollments consult it.
import type { X509Certificate } from 'node:crypto'
import type { cas } from '../../resources/cas.ts'
import type { Entity } from '../../resources/define.ts'
import { parseAuthorityCertificates } from './authority-certificates.ts'

export type CertificateAuthority = Entity<typeof cas>

type Certificates = Readonly<Record<'anchors' | 'intermediates', readonly X509Certificate[]>>

export class RegisteredAuthority {
  readonly record: CertificateAuthority
  #certificates: Certificates | undefined

  constructor(record: CertificateAuthority) {
    this.record = record
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
  get #parsed(): Certificates {
    if (!this.#certificates) {
      const { anchor, intermediates } = parseAuthorityCertificates(this.record.certPem)
      this.#certificates = { anchors: [anchor], intermediates }
    }
    return this.#certificates
  }
}
