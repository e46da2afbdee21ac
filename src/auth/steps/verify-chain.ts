// Certificate: verifies that it leads to the authority of its authenticator.
import type { X509Certificate } from 'node:crypto'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/** First with the presented certificates alone, then with the intermediates of the authority. */
export const verifyChain: Step = (attempt) => {
  const { clientTrust } = attempt.parts.auth
  const authorities = clientTrust.authoritiesFor(attempt.authenticator)
  if (authorities.length === 0)
    throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'the certificate belongs to no authenticator')
  const [leaf, ...others] = attempt.credentials.certificates
  const trust = clientTrust.judge(authorities, leaf as X509Certificate, others, attempt.context.clock.now())
  if (!trust) throw new AuthenticationError('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
  attempt.isChainProper = trust === 'proper'
}
