// Certificate: verifies that it leads to the authority of its authenticator, or to one that finds its identity by a claim.
import type { X509Certificate } from 'node:crypto'
import { MAX_PRESENTED_CERTIFICATES, SignatureBudget } from '../../../pki/chains.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { ChainVerdict } from '../client-trust.ts'
import type { SignInAttempt, Step } from '../sign-in-attempt.ts'

export const verifyChain: Step = (attempt) => {
  const verdict = judgeKnownIssuer(attempt) ?? judgeCachedPath(attempt) ?? judgePresentedPath(attempt)
  attempt.isChainProper = verdict.isProper
  attempt.authority = verdict.registered
  attempt.claim = verdict.claim
}

/**
 * If the client presents the issuer of its certificate, and that is an intermediate of the controller, judges the certificate with it.
 * OpenSSL has found the issuer by its name and key: to read it from the connection would tell no more. Undefined if a root is not right
 * above it, because then what else the client presents matters.
 */
function judgeKnownIssuer(attempt: SignInAttempt): ChainVerdict | undefined {
  const { authenticator, certificate, credentials, parts } = attempt
  if (authenticator?.caId !== null || !credentials.peer.isIssuerPresented) return undefined
  const issuers = parts.auth.clientTrust.listOwnIntermediates().filter((one) => certificate.checkIssued(one))
  if (issuers.length === 0) return undefined
  const verdict = judgeChain(attempt, [certificate, ...issuers])
  return verdict?.isProper ? verdict : undefined
}

/**
 * If the client presents the issuer of its certificate, judges the certificate with the issuers by which it led to its
 * authority before: whether all of them are valid now, and the authority is trusted now. Undefined if it leads to none.
 */
function judgeCachedPath(attempt: SignInAttempt): ChainVerdict | undefined {
  const { authenticator, credentials, parts } = attempt
  if (!authenticator?.fingerprint256 || !credentials.peer.isIssuerPresented) return undefined
  const issuers = parts.auth.presentedIssuers.find(authenticator.fingerprint256)
  return issuers && judgeChain(attempt, [attempt.certificate, ...issuers])
}

/** @throws AuthenticationError if the certificate leads to no trusted authority */
function judgePresentedPath(attempt: SignInAttempt): ChainVerdict {
  const { authenticator, credentials, parts } = attempt
  const { clientTrust, presentedIssuers } = parts.auth
  // All intermediates of the controller itself are known.
  const canLackIssuers = authenticator ? authenticator.caId !== null : clientTrust.hasRegistered
  const checks = new SignatureBudget()
  const intermediates = authenticator?.caId === null ? clientTrust.listOwnIntermediates() : []
  for (const presented of presentedIssuers.listPresented(
    credentials.peer,
    authenticator !== undefined,
    intermediates,
  )) {
    if (presented.length > MAX_PRESENTED_CERTIFICATES) {
      throw new AuthenticationError(
        'TOO_MANY_CERTIFICATES',
        `more than ${MAX_PRESENTED_CERTIFICATES} certificates were presented`,
      )
    }
    const verdict = judgeChain(attempt, presented, checks)
    if (verdict?.registered) presentedIssuers.addIntermediates(presented.slice(1))
    if (verdict && authenticator?.fingerprint256 && verdict.isProper && credentials.peer.isIssuerPresented)
      presentedIssuers.add(authenticator.fingerprint256, presented.slice(1), verdict.anchors)
    if (verdict) return verdict
    if (!canLackIssuers) break
  }
  throw authenticator
    ? new AuthenticationError('UNTRUSTED_CERTIFICATE', 'the certificate leads to no trusted authority')
    : new AuthenticationError(
        'UNKNOWN_CREDENTIAL',
        'the certificate belongs to no authenticator, and names no identity',
      )
}

/** First with these certificates alone, then with the intermediates of the authority. */
function judgeChain(
  { authenticator, context, parts }: SignInAttempt,
  certificates: readonly X509Certificate[],
  checks = new SignatureBudget(),
): ChainVerdict | undefined {
  const { clientTrust } = parts.auth
  const authorities = clientTrust.listForSignIn(authenticator, certificates)
  const [own, ...others] = certificates
  const options = { canBePinned: authenticator !== undefined, checks }
  return own && clientTrust.judge(authorities, own, others, context.clock.now(), options)
}
