// The auth policies in memory, because every request checks them; an edit takes effect on the next request.
import type { Kysely } from 'kysely'
import { authPolicies } from '../definitions/resources/auth-policies.ts'
import type { AnyRow, Entity } from '../definitions/resources/define.ts'
import type { Database } from '../storage/database.ts'
import { entityFromRow } from '../storage/entities/rows.ts'
import type { Commit } from '../storage/transactions/changes.ts'
import type { WriteContext } from '../storage/transactions/context.ts'
import type { DerivedRows } from '../storage/transactions/projection.ts'
import type { Method } from './sign-in/authentication-methods.ts'

export type AuthPolicy = Entity<typeof authPolicies>

/** The part of a policy for each method. */
const METHOD_PARTS: Readonly<Record<Method, keyof AuthPolicy['primary']>> = {
  password: 'updb',
  cert: 'cert',
  'ext-jwt': 'extJwt',
}

/** Whether tokens of the signer are accepted as a primary factor; an empty list of the policy allows every signer. */
export function isSignerAllowed({ primary }: AuthPolicy, signerId: string): boolean {
  const { allowed, allowedSigners } = primary.extJwt
  return allowed && (allowedSigners.length === 0 || allowedSigners.includes(signerId))
}

/** Whether identities with the policy may sign in by the method. */
export function isMethodAllowed({ primary }: AuthPolicy, method: Method): boolean {
  return primary[METHOD_PARTS[method]].allowed
}

export class AuthPolicies implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'auth policies'
  #byId = new Map<string, AuthPolicy>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('auth_policies').selectAll().execute()
    const policies = rows.map((row) => entityFromRow(authPolicies, row as AnyRow) as AuthPolicy)
    this.#byId = new Map(policies.map((policy) => [policy.id, policy]))
  }

  /** Returns an auth policy. The policy of an identity always exists, because a policy in use cannot be deleted. */
  get(id: string): AuthPolicy {
    const policy = this.#byId.get(id)
    if (!policy) throw new Error(`there is no auth policy ${id}, although an identity names it`)
    return policy
  }

  /** Returns an auth policy as it is after the changes that are not committed yet, one of which may have created it. */
  getNewest({ uncommitted }: Pick<WriteContext, 'uncommitted'>, id: string): AuthPolicy {
    return uncommitted.findNewest('auth-policies', id) ?? this.get(id)
  }

  all(): Iterable<AuthPolicy> {
    return this.#byId.values()
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== authPolicies.plural) continue
      if (after) this.#byId.set(id, after)
      else this.#byId.delete(id)
    }
  }
}
