// Certificate: requires a client certificate. The handshake has proven its key.
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const requireCertificate: Step = ({ credentials: { peer } }) => {
  if (!peer.own) throw new AuthenticationError('NO_CERTIFICATE', 'the connection has no client certificate')
}
