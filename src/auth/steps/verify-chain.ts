// Certificate: verifies that it leads to the authority of its authenticator, or to one that finds its identity by a claim.
import type { X509Certificate } from 'node:crypto'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/** First with the presented certificates alone, then with the intermediates of the authority. */
export const verifyChain: Step = (attempt) => {
  const { clientTrust } = attempt.parts.auth
  const { certificates } = attempt.credentials
  const authorities = clientTrust.listForSignIn(attempt.authenticator, certificates)
  if (authorities.length === 0 && !attempt.authenticator)
    throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'the certificate belongs to no authenticator')
  const [leaf, ...others] = certificates
  const verdict = clientTrust.judge(authorities, leaf as X509Certificate, others, attempt.context.clock.now())
  if (!verdict) throw new AuthenticationError('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
  attempt.isChainProper = verdict.isProper
  attempt.authority = verdict.registered
}
