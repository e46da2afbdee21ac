// Certificate: it leads to an authority that this controller trusts.
import type { X509Certificate } from 'node:crypto'
import { Refusal, type Step } from '../attempt.ts'

/**
 * First by what was sent alone, then with the controller's own intermediates to help. The authorities of others, verified
 * and open to sign-in, and the claims that name an identity in their certificates, come third and have no records yet.
 */
export const trustedChain: Step = (attempt) => {
  const [leaf, ...others] = attempt.presented.certificates
  const trust = attempt.context.controller.clientTrust.judge(
    leaf as X509Certificate,
    others,
    attempt.context.clock.now(),
  )
  if (!trust) throw new Refusal('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
  attempt.isChainProper = trust === 'proper'
}
