// Refuses a plan that would end the rights of the caller that applies it: the rest of the file could not be applied.

import { requireSameRights } from '../../authentication/api-sessions/require-same-rights.ts'
import type { Auth } from '../../authentication/auth.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { invalidError } from '../../foundation/errors.ts'
import { toChange } from '../../storage/transactions/changes.ts'
import { UncommittedChanges } from '../../storage/transactions/uncommitted-changes.ts'
import type { Planning } from './plan-records.ts'
import type { ChangeStep, PlanStep } from './plan-step.ts'

/**
 * Judges the session of the caller as each of its transactions is judged, by the records as they are after the plan. It is a
 * mistake if the caller would not be an administrator, or would owe a second factor.
 */
export function requireOwnRights(
  auth: Pick<Auth, 'apiSessions' | 'machineTokens' | 'policies' | 'signers'>,
  { context: { caller, clock }, steps, mistakes }: Pick<Planning, 'context' | 'steps' | 'mistakes'>,
): void {
  if (caller.kind !== 'identity') return
  const changes = steps.flatMap((step) => {
    if (step.action === 'delete') return []
    const operation = step.action === 'create' ? ('create' as const) : ('update' as const)
    const { id, after, fileResource } = step
    return toChange({ operation, audit: 'none', resource: fileResource.resource.plural, id, at: clock.now(), after })
  })
  requireSameRights(auth, { caller, clock, uncommitted: new UncommittedChanges([]) })
  try {
    requireSameRights(auth, { caller, clock, uncommitted: new UncommittedChanges(changes) })
  } catch (error) {
    const identity = findChange(steps, identities.plural, caller.identityId)
    const { apiSessions, machineTokens } = auth
    const holder = caller.token ? machineTokens.get(caller.token.id) : apiSessions.get(caller.apiSessionId)
    const policyId = identity?.after.authPolicyId ?? holder?.identity.authPolicyId
    mistakes.add(describeLoss(identity, findChange(steps, authPolicies.plural, String(policyId))) ?? error)
  }
}

function describeLoss(identity: ChangeStep | undefined, policy: ChangeStep | undefined): unknown {
  if (identity?.before.isAdmin === true && identity.after.isAdmin !== true)
    return invalidError(
      `${identity.path}.isAdmin`,
      'would take your own right to apply the file',
      identity.after.isAdmin,
    )
  const reason = 'would require a second factor that your own session has not passed: sign in with it before'
  if (identity && identity.before.authPolicyId !== identity.after.authPolicyId)
    return invalidError(`${identity.path}.authPolicy`, reason)
  return policy && invalidError(`${policy.path}.secondary`, reason)
}

function findChange(steps: readonly PlanStep[], plural: string, id: string): ChangeStep | undefined {
  return steps.find(
    (step): step is ChangeStep =>
      step.action === 'change' && step.id === id && step.fileResource.resource.plural === plural,
  )
}
