// External token: a bearer token of a signer that the auth policy allows. Signers come with a later release.
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const verifyExternalToken: Step = () => {
  throw new AuthenticationError('UNKNOWN_SIGNER', 'there are no external signers')
}
