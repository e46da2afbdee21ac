// Password: whose username it is. Nobody's is no refusal yet: a password is compared all the same.
import type { Step } from '../attempt.ts'
import { credentialOfUsername } from '../credentials.ts'
import { foldUsername } from '../usernames.ts'

const noCertificate = { isIssuedByNetwork: false, isExtendRequested: false, lastAuthResolvedToRoot: false } as const

export const knownUsername: Step = async (attempt) => {
  const [row] = await credentialOfUsername(attempt.context.db, foldUsername(attempt.presented.username ?? ''))
  attempt.authenticator = row && { ...row, ...noCertificate }
}
