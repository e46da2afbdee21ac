// Whether a client's certificate leads to an authority that this controller trusts.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import type { Authority } from '../pki/authority.ts'
import { buildChain, isSelfSigned } from '../pki/chains.ts'

/** `proper`: what was sent leads to a root. `improper`: it does only with an intermediate of ours taken as trusted. */
export type Trust = 'proper' | 'improper'

export class ClientTrust {
  readonly #own: readonly X509Certificate[]
  readonly #roots: readonly X509Certificate[]

  constructor({ bundle }: Pick<Authority, 'bundle'>) {
    this.#own = bundle
    this.#roots = bundle.filter(isSelfSigned)
  }

  /** Undefined where nothing is trusted. Whether the leaf itself is within its dates is for its auth policy to say. */
  judge(leaf: X509Certificate, others: readonly X509Certificate[], now: Instant): Trust | undefined {
    const options = { now, ignoreLeafDates: true }
    const bag = others.map((certificate) => this.#known(certificate))
    if (buildChain(leaf, bag, this.#roots, options)) return 'proper'
    return buildChain(leaf, bag, this.#own, options) ? 'improper' : undefined
  }

  /** Our own authorities as the very objects we hold: what was verified of them once need not be again. */
  #known(certificate: X509Certificate): X509Certificate {
    const { raw } = certificate
    return this.#own.find((own) => own.raw.equals(raw)) ?? certificate
  }
}
