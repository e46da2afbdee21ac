// Certificate: it is within its dates, or the policy does not mind.
import type { X509Certificate } from 'node:crypto'
import { isWithinDates } from '../../pki/certificates.ts'
import { AuthenticationError, type Step } from '../sign-in-attempt.ts'

export const requireUnexpiredCertificate: Step = ({ context, policy, credentials: presented }) => {
  if (policy.primary.cert.allowExpiredCerts) return
  const leaf = presented.certificates[0] as X509Certificate
  if (!isWithinDates(leaf, context.clock.now())) {
    throw new AuthenticationError(
      'EXPIRED_CERTIFICATE',
      `the certificate is outside its dates, and auth policy ${policy.id} minds`,
    )
  }
}
