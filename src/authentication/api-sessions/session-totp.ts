// The second factor by one-time passwords, as the rows of API sessions hold it.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

export class SessionTotp {
  readonly #entities: EntityStore

  constructor(entities: EntityStore) {
    this.#entities = entities
  }

  /** Stores that a session passed a TOTP code now. @throws NOT_FOUND if it has ended */
  async complete(tx: WriteContext, id: string): Promise<void> {
    const passed = { owesTotp: true, isMfaComplete: true, mfaPassedAt: tx.clock.now() }
    await this.#entities.update(tx, apiSessions, await get(tx, apiSessions, id), passed)
  }

  /** Makes the sessions of an identity owe TOTP that have not passed it, because another session has verified one. */
  async require(tx: WriteContext, identityId: string): Promise<void> {
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .where('owesTotp', '=', 0)
      .where('isMfaComplete', '=', 0)
      .execute()
    for (const { id } of rows) {
      const session = await get(tx, apiSessions, id)
      await this.#entities.update(tx, apiSessions, session, { owesTotp: true }, { audit: 'none' })
    }
  }

  /**
   * Makes the sessions of an identity that passed a code as if there had never been a factor, because it was removed: what the
   * auth policy requires is owed again. A session that never passed one stays partial, because the removal proves nothing.
   */
  async reset(tx: WriteContext, identityId: string): Promise<void> {
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .where((eb) => eb.or([eb('isMfaComplete', '=', 1), eb('mfaPassedAt', 'is not', null)]))
      .execute()
    for (const { id } of rows) {
      const session = await get(tx, apiSessions, id)
      const initial = { owesTotp: false, isMfaComplete: false, mfaPassedAt: null }
      await this.#entities.update(tx, apiSessions, session, initial, { audit: 'none' })
    }
  }
}
