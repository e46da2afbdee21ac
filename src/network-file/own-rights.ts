// Refuses a plan that would end the rights of the caller that applies it: the rest of the file could not be applied.
import type { Auth } from '../auth/auth.ts'
import { requireSameRights } from '../auth/callers.ts'
import type { Context } from '../context.ts'
import { ControllerError, invalidError } from '../errors.ts'
import { authPolicies } from '../resources/auth-policies.ts'
import { externalJwtSigners } from '../resources/external-jwt-signers.ts'
import { identities } from '../resources/identities.ts'
import type { ChangeStep, PlanStep } from './plan-step.ts'

/**
 * Judges the session of the caller as each of its transactions is judged, by the records as they are after the plan.
 * @throws COULD_NOT_VALIDATE if the caller would not be an administrator, or would owe a second factor, by the place of the change
 */
export function requireOwnRights(auth: Auth, { caller, clock }: Context, steps: readonly PlanStep[]): void {
  if (caller.kind !== 'identity') return
  const ownIdentity = findChange(steps, identities.plural, ({ id }) => id === caller.identityId)
  const changes = steps.flatMap((step) => {
    const { id, fileResource, action } = step
    const { plural } = fileResource.resource
    if (action === 'delete') return []
    return { operation: action === 'create' ? ('create' as const) : ('update' as const), resource: plural, id, after: step.after }
  })
  try {
    requireSameRights(auth, caller, changes, clock.now())
  } catch (error) {
    const code = error instanceof ControllerError && error.publicCause && 'code' in error.publicCause
    if (!code) throw error
    throw describeLoss(steps, ownIdentity) ?? error
  }
}

function describeLoss(steps: readonly PlanStep[], ownIdentity: ChangeStep | undefined): unknown {
  if (ownIdentity?.before.isAdmin === true && ownIdentity.after.isAdmin !== true)
    return invalidError(`${ownIdentity.path}.isAdmin`, 'would take your own right to apply the file', ownIdentity.after.isAdmin)
  const reason = 'would require a second factor that your own session has not passed, so that you could not apply the rest of the file'
  if (ownIdentity && ownIdentity.before.authPolicyId !== ownIdentity.after.authPolicyId)
    return invalidError(`${ownIdentity.path}.authPolicy`, reason)
  return undefined
}

function findChange(
  steps: readonly PlanStep[],
  plural: string,
  isMeant: (step: ChangeStep) => boolean,
): ChangeStep | undefined {
  return steps.find(
    (step): step is ChangeStep => step.action === 'change' && step.fileResource.resource.plural === plural && isMeant(step),
  )
}
