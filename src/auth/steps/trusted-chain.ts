// Certificate: it leads to the authority that its authenticator was made under.
import type { X509Certificate } from 'node:crypto'
import { Refusal, type Step } from '../attempt.ts'

/** First by what was sent alone, then with the intermediates of that authority to help. */
export const trustedChain: Step = (attempt) => {
  const { clock, controller } = attempt.context
  const { clientTrust } = controller
  const authorities = clientTrust.authoritiesFor(attempt.authenticator)
  if (authorities.length === 0) throw new Refusal('UNKNOWN_CREDENTIAL', 'the certificate belongs to no authenticator')
  const [leaf, ...others] = attempt.presented.certificates
  const trust = clientTrust.judge(authorities, leaf as X509Certificate, others, clock.now())
  if (!trust) throw new Refusal('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
  attempt.isChainProper = trust === 'proper'
}
