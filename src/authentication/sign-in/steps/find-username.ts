// Password: finds the authenticator of the username. An unknown username is not refused yet, so that timing is the same.

import { findByUsername } from '../../credentials/credentials.ts'
import { foldUsername } from '../../credentials/usernames.ts'
import { NO_CERTIFICATE } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const findUsername: Step = async (attempt) => {
  const [row] = await findByUsername(attempt.context.db, foldUsername(attempt.credentials.username ?? ''))
  attempt.authenticator = row && { ...NO_CERTIFICATE, ...row }
}
