// Verifies client certificates against the authorities that they may lead to.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import type { Authority } from '../pki/authority.ts'
import { buildChain, SignatureBudget } from '../pki/chains.ts'
import type { AuthenticatorMatch } from './authentication-methods.ts'

/** `proper`: the presented certificates lead to a root. `improper`: they lead only to an intermediate of the authority. */
export type ChainTrust = 'proper' | 'improper'

/** An authority whose certificates are accepted as credentials. */
export interface ClientAuthority {
  /** Certificates that a chain may end at. */
  readonly anchors: readonly X509Certificate[]
  /** The anchors at which a proper chain ends. */
  readonly roots: readonly X509Certificate[]
}

export class ClientTrustStore {
  readonly #authority: Pick<Authority, 'trust'>

  constructor(authority: Pick<Authority, 'trust'>) {
    this.#authority = authority
  }

  /** The controller itself, with the authorities that it has at the moment. */
  get #own(): ClientAuthority {
    return this.#authority.trust
  }

  /**
   * Returns the authorities to verify a certificate against: the controller's own if an authenticator holds the certificate,
   * otherwise none. An unknown certificate could sign in only by a third-party authority with a claim, and such authorities
   * have no records yet.
   */
  authoritiesFor(authenticator: AuthenticatorMatch | undefined): readonly ClientAuthority[] {
    return authenticator ? [this.#own] : []
  }

  /**
   * Returns how a certificate leads to one of the authorities; undefined if it leads to none. All authorities together share
   * one budget of signature checks. The auth policy decides whether the leaf may be expired.
   */
  judge(
    authorities: readonly ClientAuthority[],
    leaf: X509Certificate,
    others: readonly X509Certificate[],
    now: Instant,
    purpose?: 'client',
  ): ChainTrust | undefined {
    const options = { now, ignoreLeafDates: true, checks: new SignatureBudget(), ...(purpose ? { purpose } : {}) }
    for (const { anchors, roots } of authorities) {
      const bag = others.map((certificate) => toAnchor(certificate, anchors))
      if (buildChain(leaf, bag, roots, options)) return 'proper'
      if (buildChain(leaf, bag, anchors, options)) return 'improper'
    }
    return undefined
  }

  /** Whether the controller issued the certificate to a TLS client, by a chain that is valid at `now`. */
  isOwnClient(leaf: X509Certificate, now: Instant): boolean {
    return this.judge([this.#own], leaf, [], now, 'client') !== undefined
  }

  /** Whether the controller issued the certificate, by a chain that was valid at `now`. */
  isOwn(leaf: X509Certificate, now: Instant): boolean {
    return this.judge([this.#own], leaf, [], now) !== undefined
  }
}

/** Returns the anchor with the same bytes, if there is one, because checks are cached by object. */
function toAnchor(certificate: X509Certificate, anchors: readonly X509Certificate[]): X509Certificate {
  const { raw } = certificate
  return anchors.find((anchor) => anchor.raw.equals(raw)) ?? certificate
}
