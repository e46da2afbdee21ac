// Password: waits until the wrong passwords before it are counted, because the last of them may lock the identity.
import type { Step } from '../sign-in-attempt.ts'

export const awaitCounts: Step = ({ authenticator, parts }) =>
  authenticator && parts.auth.failedSignIns.settle(authenticator.id)
