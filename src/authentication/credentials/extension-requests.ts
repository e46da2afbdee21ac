// Requests to extend certificates early: flags on authenticators, which their holders act on.
import type { Kysely } from 'kysely'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { errors } from '../../foundation/errors.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import type { Authenticator } from './authenticator-behavior.ts'
import { listAuthenticatorIds } from './credentials.ts'

/** Requests the extension of one certificate. @throws NOT_FOUND, or NOT_EXTENDABLE if the authenticator is a password */
export async function requestExtension(
  entities: EntityStore,
  context: Context,
  id: string,
  rollKeys: boolean,
): Promise<void> {
  await context.write(async (tx) => {
    const authenticator = await get(tx, authenticators, id)
    if (authenticator.method !== 'cert') throw errors.NOT_EXTENDABLE({ message: 'the authenticator is a password' })
    await flagAuthenticator(entities, tx, authenticator, rollKeys)
  })
}

/** Requests the extension of every certificate of an identity. @throws NOT_FOUND, or NOT_EXTENDABLE if it has none */
export async function requestExtensionForIdentity(
  entities: EntityStore,
  context: Context,
  identityId: string,
  rollKeys: boolean,
): Promise<void> {
  await context.write(async (tx) => {
    await get(tx, identities, identityId)
    const rows = await listAuthenticatorIds(tx.db, identityId, 'cert')
    if (rows.length === 0) throw errors.NOT_EXTENDABLE({ message: 'the identity has no certificate' })
    for (const { id } of rows) await flagAuthenticator(entities, tx, await get(tx, authenticators, id), rollKeys)
  })
}

async function flagAuthenticator(
  entities: EntityStore,
  tx: WriteContext,
  authenticator: Authenticator,
  rollKeys: boolean,
): Promise<void> {
  await entities.update(tx, authenticators, authenticator, {
    isExtendRequested: true,
    isKeyRollRequested: rollKeys,
    extendRequestedAt: tx.clock.now(),
  })
}

/** The requested extensions in memory, because each read of a current API session shows them. */
export class ExtensionRequests implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'extension requests'
  /** By authenticator: whether a new key is requested too. */
  #rollKeys = new Map<string, boolean>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('authenticators')
      .select(['id', 'isKeyRollRequested'])
      .where('isExtendRequested', '=', 1)
      .execute()
    this.#rollKeys = new Map(rows.map(({ id, isKeyRollRequested }) => [id, isKeyRollRequested === 1]))
  }

  /** Returns what is requested of the holder of a certificate. */
  get(authenticatorId: string): { isCertExtendRequested: boolean; isCertKeyRollRequested: boolean } {
    const rollKeys = this.#rollKeys.get(authenticatorId)
    return { isCertExtendRequested: rollKeys !== undefined, isCertKeyRollRequested: rollKeys === true }
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource !== authenticators.plural) continue
      if (after?.isExtendRequested) this.#rollKeys.set(id, after.isKeyRollRequested === true)
      else if (after || operation === 'delete') this.#rollKeys.delete(id)
    }
  }
}
