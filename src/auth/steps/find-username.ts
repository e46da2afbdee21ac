// Password: whose username it is. Nobody's is no refusal yet: a password is compared all the same.

import { findByUsername } from '../credentials.ts'
import type { Step } from '../sign-in-attempt.ts'
import { foldUsername } from '../usernames.ts'

const noCertificate = { isIssuedByNetwork: false, isExtendRequested: false, lastAuthResolvedToRoot: false } as const

export const findUsername: Step = async (attempt) => {
  const [row] = await findByUsername(attempt.context.db, foldUsername(attempt.credentials.username ?? ''))
  attempt.authenticator = row && { ...row, ...noCertificate }
}
