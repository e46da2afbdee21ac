// Revokes the API sessions that rest on what a change takes away, in the transaction of that change.
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { get } from '../../storage/entities/entities.ts'
import type { ChangeOf } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import { isMethodAllowed, isSignerAllowed } from '../auth-policies.ts'
import type { ApiSessions } from './api-sessions.ts'
import { isAmong, listRevoked, toSessionBasis } from './session-basis.ts'
import { queryRevocations } from './session-rows.ts'

/** Runs after the changes of a transaction. */
export async function revokeApiSessions(apiSessions: ApiSessions, tx: WriteContext): Promise<void> {
  for (const change of [...tx.uncommitted.own]) {
    for (const sessions of listRevoked(change)) await apiSessions.revokeMany(tx, sessions)
    if (change.resource === 'identities') await revokeOfIdentity(apiSessions, tx, change)
  }
}

/** Revokes those of an identity that rest on an earlier external id, or whose method its new auth policy does not allow. */
async function revokeOfIdentity(
  apiSessions: ApiSessions,
  tx: WriteContext,
  { id, before, after }: ChangeOf<'identities'>,
) {
  if (!before || !after) return
  if (before.authPolicyId === after.authPolicyId && before.externalId === after.externalId) return
  const policy = await get(tx, authPolicies, after.authPolicyId)
  // Memory does not know them yet.
  const revocations = tx.uncommitted.all.flatMap(listRevoked)
  const storedRevocations = await queryRevocations(tx.db)
  const rows = await tx.db
    .selectFrom('api_sessions')
    .select(['n', 'id', 'method', 'authenticatorId', 'signerKey', 'caId', 'externalId'])
    .where('identityId', '=', id)
    .execute()
  const lostRows = rows.filter((row) => {
    const basis = toSessionBasis(row)
    const { method, signerId } = basis
    if (row.externalId !== null && row.externalId !== after.externalId) return true
    if (method === null) return false
    const isAllowed = isMethodAllowed(policy, method) && (signerId === null || isSignerAllowed(policy, signerId))
    // After a restart, nothing would tell those that were revoked by the earlier policy.
    const isRevoked = apiSessions.isRevoked(row.id) || revocations.some((of) => isAmong(of, basis, before.authPolicyId))
    // Nor would it tell that the others were of another policy when the later one revoked its own.
    const isTakenForRevoked = storedRevocations.some(
      ({ newest, of }) => row.n <= newest && isAmong(of, basis, after.authPolicyId),
    )
    return !isAllowed || isRevoked || isTakenForRevoked
  })
  await apiSessions.revoke(
    tx,
    lostRows.map((row) => row.id),
  )
}
