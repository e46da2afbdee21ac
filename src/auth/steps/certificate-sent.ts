// Certificate: the connection has one. The first is the one whose key the handshake has proven.
import { Refusal, type Step } from '../attempt.ts'

export const certificateSent: Step = ({ presented: { certificates } }) => {
  if (certificates.length === 0) throw new Refusal('NO_CERTIFICATE', 'the connection has no client certificate')
}
