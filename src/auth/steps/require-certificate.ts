// Certificate: requires a client certificate, and not too many. The handshake has proven the key of the first.
import { MAX_PRESENTED_CERTIFICATES } from '../../pki/chains.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const requireCertificate: Step = ({ credentials: { certificates } }) => {
  if (certificates.length === 0)
    throw new AuthenticationError('NO_CERTIFICATE', 'the connection has no client certificate')
  if (certificates.length > MAX_PRESENTED_CERTIFICATES) {
    throw new AuthenticationError(
      'TOO_MANY_CERTIFICATES',
      `more than ${MAX_PRESENTED_CERTIFICATES} certificates were presented`,
    )
  }
}
