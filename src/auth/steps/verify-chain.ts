// Certificate: it leads to the authority that its authenticator was made under.
import type { X509Certificate } from 'node:crypto'
import { AuthenticationError, type Step } from '../sign-in-attempt.ts'

/** First by what was sent alone, then with the intermediates of that authority to help. */
export const verifyChain: Step = (attempt) => {
  const { clock, controller } = attempt.context
  const { clientTrust } = controller
  const authorities = clientTrust.authoritiesFor(attempt.authenticator)
  if (authorities.length === 0)
    throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'the certificate belongs to no authenticator')
  const [leaf, ...others] = attempt.credentials.certificates
  const trust = clientTrust.judge(authorities, leaf as X509Certificate, others, clock.now())
  if (!trust) throw new AuthenticationError('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
  attempt.isChainProper = trust === 'proper'
}
