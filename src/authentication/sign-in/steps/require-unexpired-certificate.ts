// Certificate: requires that it is not expired, unless the auth policy allows expired ones.
import { isWithinDates } from '../../../pki/certificates.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const requireUnexpiredCertificate: Step = (attempt) => {
  const { context, policy } = attempt
  if (policy.primary.cert.allowExpiredCerts) return
  if (!isWithinDates(attempt.certificate, context.clock.now())) {
    throw new AuthenticationError(
      'EXPIRED_CERTIFICATE',
      `the certificate is not valid now, and auth policy ${policy.id} does not allow that`,
    )
  }
}
