// External token: a bearer token of a signer that the auth policy allows. Signers come with a later release.
import { Refusal, type Step } from '../attempt.ts'

export const externalToken: Step = () => {
  throw new Refusal('UNKNOWN_SIGNER', 'there are no external signers')
}
