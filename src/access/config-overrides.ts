// The configs that one identity gets for a service in place of the service's own: at most one of each config type.

import { serviceConfigs } from '../definitions/resources/service-configs.ts'
import { notFoundError } from '../foundation/errors.ts'
import { type EntityStore, get, newEntity } from '../storage/entities/entities.ts'
import type { Context, WriteContext } from '../storage/transactions/context.ts'
import { isOneOf } from '../storage/untyped.ts'

export interface ServiceConfig {
  readonly serviceId: string
  readonly configId: string
}

/**
 * Gives an identity these configs; one that it has for the same service and of the same type is replaced.
 * @throws NOT_FOUND for an identity, service or config that does not exist; then nothing is changed
 */
export async function addOverrides(
  entities: EntityStore,
  context: Context,
  identityId: string,
  pairs: readonly ServiceConfig[],
) {
  await context.write(async (tx) => {
    await assertIdentity(tx, identityId)
    await assertServices(tx, pairs)
    const types = await loadConfigTypes(tx, pairs)
    for (const { serviceId, configId } of pairs) {
      const configTypeId = types.get(configId) ?? ''
      const present = await findOverride(tx, identityId, serviceId, configTypeId)
      if (!present) {
        const values = { identityId, serviceId, configId, configTypeId }
        await entities.insert(tx, serviceConfigs, newEntity(tx, serviceConfigs, values))
      } else if (present.configId !== configId) {
        await entities.update(tx, serviceConfigs, await get(tx, serviceConfigs, present.id), { configId })
      }
    }
  })
}

/**
 * Removes the configs that an identity has for these services, of the types of these configs, whichever config of a type it
 * has; absent ones are skipped. @throws NOT_FOUND for an identity or config that does not exist
 */
export async function removeOverrides(
  entities: EntityStore,
  context: Context,
  identityId: string,
  pairs: readonly ServiceConfig[],
) {
  await context.write(async (tx) => {
    await assertIdentity(tx, identityId)
    const types = await loadConfigTypes(tx, pairs)
    for (const { serviceId, configId } of pairs) {
      const present = await findOverride(tx, identityId, serviceId, types.get(configId) ?? '')
      if (present) await entities.removeInTransaction(tx, serviceConfigs, present.id)
    }
  })
}

function findOverride({ db }: WriteContext, identityId: string, serviceId: string, configTypeId: string) {
  return db
    .selectFrom('service_configs')
    .select(['id', 'configId'])
    .where('identityId', '=', identityId)
    .where('serviceId', '=', serviceId)
    .where('configTypeId', '=', configTypeId)
    .executeTakeFirst()
}

async function assertIdentity({ db }: WriteContext, id: string): Promise<void> {
  const identityRow = await db.selectFrom('identities').select('id').where('id', '=', id).executeTakeFirst()
  if (!identityRow) throw notFoundError('identity', id)
}

async function assertServices({ db }: WriteContext, pairs: readonly ServiceConfig[]): Promise<void> {
  const serviceIds = pairs.map(({ serviceId }) => serviceId)
  const rows = await db
    .selectFrom('services')
    .select('id')
    .where(isOneOf(db, 'id', serviceIds))
    .execute()
  const existingIds = new Set(rows.map(({ id }) => id))
  const missing = serviceIds.find((id) => !existingIds.has(id))
  if (missing !== undefined) throw notFoundError('service', missing)
}

/** Config → config type. @throws NOT_FOUND */
async function loadConfigTypes(
  { db }: WriteContext,
  pairs: readonly ServiceConfig[],
): Promise<ReadonlyMap<string, string>> {
  const configIds = pairs.map(({ configId }) => configId)
  const rows = await db
    .selectFrom('configs')
    .select(['id', 'configTypeId'])
    .where(isOneOf(db, 'id', configIds))
    .execute()
  const types = new Map(rows.map(({ id, configTypeId }) => [id, configTypeId]))
  const missing = configIds.find((id) => !types.has(id))
  if (missing !== undefined) throw notFoundError('config', missing)
  return types
}
