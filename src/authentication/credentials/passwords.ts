// The passwords of identities: what their auth policies demand of a new one, and the authenticator that it becomes.

import { authenticators } from '../../definitions/resources/authenticators.ts'
import { invalidError } from '../../foundation/errors.ts'
import { type EntityStore, newEntity } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import { listAuthenticatorIds } from './credentials.ts'
import type { PasswordHasher } from './password-hasher.ts'
import { assertPasswordPolicy } from './password-rules.ts'

/** The parts that passwords are set with. */
interface PasswordsParts {
  readonly entities: EntityStore
  readonly hasher: PasswordHasher
  readonly policies: AuthPolicies
  readonly apiSessions: ApiSessions
}

export class Passwords {
  readonly #entities: EntityStore
  readonly #hasher: PasswordHasher
  readonly #policies: AuthPolicies
  readonly #apiSessions: ApiSessions

  constructor({ entities, hasher, policies, apiSessions }: PasswordsParts) {
    this.#entities = entities
    this.#hasher = hasher
    this.#policies = policies
    this.#apiSessions = apiSessions
  }

  /**
   * Returns the hash of a new password that the identity's auth policy accepts.
   * @throws COULD_NOT_VALIDATE, SERVER_TOO_MANY_REQUESTS
   */
  async hash(context: Context, identityId: string, password: string): Promise<string> {
    const identity = await context.db
      .selectFrom('identities')
      .select('authPolicyId')
      .where('id', '=', identityId)
      .executeTakeFirst()
    if (!identity) throw invalidError('identityId', 'does not exist', identityId)
    assertPasswordPolicy(password, this.#policies.get(identity.authPolicyId))
    return this.#hasher.hash(password, context)
  }

  /**
   * Stores username and password hash of an identity as its one password authenticator. If it replaces an earlier one, all
   * sessions of the identity end. @throws USERNAME_TAKEN
   */
  async set(tx: WriteContext, identityId: string, username: string, passwordHash: string): Promise<void> {
    const replaced = await listAuthenticatorIds(tx.db, identityId, 'updb')
    for (const { id } of replaced) await this.#entities.removeInTransaction(tx, authenticators, id)
    if (replaced.length > 0) await this.#apiSessions.revokeAll(tx, { identityId })
    await this.#entities.insert(
      tx,
      authenticators,
      newEntity(tx, authenticators, { identityId, method: 'updb', username, passwordHash }),
    )
  }
}
