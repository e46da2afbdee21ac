// The guards of every transaction: what no change may do, and what follows from one within its transaction.
import type { Access } from '../access/access.ts'
import { scheduleVerdicts } from '../access/posture/schedule-verdicts.ts'
import { revokeSessions } from '../access/sessions/revoke-sessions.ts'
import type { SessionTokens } from '../access/sessions/session-tokens.ts'
import { requireUsableAdministrator } from '../authentication/administrators/administrators.ts'
import { requireSameRights } from '../authentication/api-sessions/require-same-rights.ts'
import { revokeApiSessions } from '../authentication/api-sessions/revoke-api-sessions.ts'
import type { Auth } from '../authentication/auth.ts'
import type { RevokedTokens } from '../authentication/openid-connect/revoked-tokens.ts'
import { requireNoEscalation } from '../authentication/permissions/require-no-escalation.ts'
import { updateInventory } from '../maintenance/certificates/inventory.ts'
import type { RootReceipts } from '../maintenance/certificates/root-receipts.ts'
import { revokeTokens } from '../network/router-model/revocations.ts'
import type { EntityStore } from '../storage/entities/entities.ts'
import type { TransactionGuard } from '../storage/transactions/contexts.ts'
import type { Posture } from './controller.ts'

/** The collaborators of the guards of transactions. */
interface GuardParts {
  readonly access: Access
  readonly auth: Auth
  readonly posture: Posture
  readonly entities: EntityStore
  readonly receipts: RootReceipts
  readonly revokedTokens: RevokedTokens
  readonly sessionTokens: SessionTokens
}

/**
 * The guards of every transaction, in their order: the rights of the caller come first, and sessions are revoked only for changes
 * that no guard refuses.
 */
export function createGuards({
  access,
  auth,
  posture,
  entities,
  receipts,
  revokedTokens,
  sessionTokens,
}: GuardParts): readonly TransactionGuard[] {
  return [
    { before: (tx) => revokedTokens.requireValidToken(tx) },
    { before: (tx) => requireSameRights(auth, tx) },
    { after: requireNoEscalation },
    { after: requireUsableAdministrator },
    { after: (tx) => revokeApiSessions(auth.apiSessions, tx) },
    { after: (tx) => revokeTokens({ apiSessions: auth.apiSessions, sessionTokens }, tx) },
    { after: (tx) => revokeSessions({ access, deadlines: posture.deadlines, entities }, tx) },
    { after: (tx) => scheduleVerdicts({ access, apiSessions: auth.apiSessions, deadlines: posture.deadlines }, tx) },
    { after: (tx) => posture.reported.removeDeleted(tx) },
    { after: (tx) => updateInventory(entities, tx, tx.uncommitted.own) },
    { after: (tx) => receipts.follow(tx) },
  ]
}
