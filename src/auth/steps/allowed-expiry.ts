// Certificate: it is within its dates, or the policy does not mind.
import type { X509Certificate } from 'node:crypto'
import { isWithinDates } from '../../pki/certificates.ts'
import { Refusal, type Step } from '../attempt.ts'

export const allowedExpiry: Step = ({ context, policy, presented }) => {
  if (policy.primary.cert.allowExpiredCerts) return
  const leaf = presented.certificates[0] as X509Certificate
  if (!isWithinDates(leaf, context.clock.now())) {
    throw new Refusal('EXPIRED_CERTIFICATE', `the certificate is outside its dates, and auth policy ${policy.id} minds`)
  }
}
