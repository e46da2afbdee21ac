// Certificate: the connection has one, and not too many. The first is the one whose key the handshake has proven.
import { MAX_PRESENTED_CERTIFICATES } from '../../pki/chains.ts'
import { AuthenticationError, type Step } from '../sign-in-attempt.ts'

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
