// Which authority a client's certificate may lead to, and whether it does.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import type { Authority } from '../pki/authority.ts'
import { buildChain, isSelfSigned, SignatureBudget } from '../pki/chains.ts'
import type { AuthenticatorMatch } from './sign-in-attempt.ts'

/** `proper`: what was sent leads to a root. `improper`: it does only with an intermediate of the authority as its end. */
export type ChainTrust = 'proper' | 'improper'

/** An authority whose certificates sign clients in. */
export interface ClientAuthority {
  /** Certificates that a chain may end at. */
  readonly anchors: readonly X509Certificate[]
  /** Those among them that a proper chain ends at. */
  readonly roots: readonly X509Certificate[]
}

export class ClientTrustStore {
  /** The controller itself. */
  readonly #own: ClientAuthority

  constructor({ bundle }: Pick<Authority, 'bundle'>) {
    this.#own = { anchors: bundle, roots: bundle.filter(isSelfSigned) }
  }

  /**
   * The authorities that a certificate is checked against. An authenticator that has it names the one authority that it was
   * made under; the claim of that authority, if it yields a value, still decides whose it is. A certificate that no
   * authenticator has can sign in only by an authority that is verified and has a claim. Such authorities have no records
   * yet, so it is checked against none and costs nothing.
   */
  authoritiesFor(authenticator: AuthenticatorMatch | undefined): readonly ClientAuthority[] {
    return authenticator ? [this.#own] : []
  }

  /**
   * How a certificate leads to one of the authorities; undefined if it leads to none. All of them together may cost one
   * budget of signature checks. Whether the leaf itself is within its dates is for its auth policy to say.
   */
  judge(
    authorities: readonly ClientAuthority[],
    leaf: X509Certificate,
    others: readonly X509Certificate[],
    now: Instant,
  ): ChainTrust | undefined {
    const options = { now, ignoreLeafDates: true, checks: new SignatureBudget() }
    for (const { anchors, roots } of authorities) {
      const bag = others.map((certificate) => asHeld(certificate, anchors))
      if (buildChain(leaf, bag, roots, options)) return 'proper'
      if (buildChain(leaf, bag, anchors, options)) return 'improper'
    }
    return undefined
  }

  /** Whether a certificate was issued by the controller itself, and was in force at `now`. */
  isOwn(leaf: X509Certificate, now: Instant): boolean {
    return this.judge([this.#own], leaf, [], now) !== undefined
  }
}

/** An anchor as the very object that is held: what was verified of it once need not be again. */
function asHeld(certificate: X509Certificate, anchors: readonly X509Certificate[]): X509Certificate {
  const { raw } = certificate
  return anchors.find((anchor) => anchor.raw.equals(raw)) ?? certificate
}
