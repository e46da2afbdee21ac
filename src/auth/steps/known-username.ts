// Password: whose username it is. Nobody's is no refusal yet: a password is compared all the same.
import type { Step } from '../attempt.ts'
import { foldUsername } from '../usernames.ts'

const noCertificate = { isIssuedByNetwork: false, isExtendRequested: false, lastAuthResolvedToRoot: false } as const

export const knownUsername: Step = async (attempt) => {
  const row = await attempt.context.db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'passwordHash'])
    .where('foldedUsername', '=', foldUsername(attempt.presented.username ?? ''))
    .executeTakeFirst()
  attempt.authenticator = row && { ...row, ...noCertificate }
}
