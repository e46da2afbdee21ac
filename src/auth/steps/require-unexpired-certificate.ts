// Certificate: requires that it is not expired, unless the auth policy allows expired ones.
import type { X509Certificate } from 'node:crypto'
import { isWithinDates } from '../../pki/certificates.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const requireUnexpiredCertificate: Step = ({ context, policy, credentials }) => {
  if (policy.primary.cert.allowExpiredCerts) return
  const leaf = credentials.certificates[0] as X509Certificate
  if (!isWithinDates(leaf, context.clock.now())) {
    throw new AuthenticationError(
      'EXPIRED_CERTIFICATE',
      `the certificate is not valid now, and auth policy ${policy.id} does not allow that`,
    )
  }
}
