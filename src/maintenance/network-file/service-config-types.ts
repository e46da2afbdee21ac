// Refuses a plan by which an identity would have two configs of one type for a service.

import { configs } from '../../definitions/resources/configs.ts'
import { serviceConfigs } from '../../definitions/resources/service-configs.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Planning } from './plan-records.ts'
import type { CreateStep, DeleteStep, PlanStep } from './plan-step.ts'

/** A config that an identity has for a service. */
interface Holder {
  readonly identityId: string
  readonly serviceId: string
  readonly configTypeId: string | undefined
}

/**
 * Requires that the new service configs have other types than those which stay. One of the same type is a mistake.
 */
export async function requireDistinctConfigTypes(
  { context: { db }, steps: changes, mistakes }: Pick<Planning, 'context' | 'steps' | 'mistakes'>,
  deletions: readonly DeleteStep[],
): Promise<void> {
  const creations = changes.filter(isServiceConfigCreation)
  if (creations.length === 0) return
  const plannedConfigs = changes.filter(({ fileResource }) => fileResource.resource.plural === configs.plural)
  const plannedCreations = new Map(
    plannedConfigs.flatMap((step) => (step.action === 'create' ? [[step.id, step] as const] : [])),
  )
  const rows = await db
    .selectFrom('configs')
    .select(['id', 'name', 'configTypeId'])
    .where(
      isOneOf(
        db,
        'id',
        creations.map(({ after }) => after.configId as string),
      ),
    )
    .execute()
  const storedConfigs = new Map(rows.map((row) => [row.id, row]))
  const names = new Map<string, string>()
  const deletedIds = new Set(deletions.map(({ id }) => id))
  for (const row of await listStored({ db }, creations)) {
    if (!deletedIds.has(row.id)) names.set(toKey(row), row.name)
  }
  for (const { after, path } of creations) {
    const { identityId, serviceId, configId } = after as unknown as Record<string, string>
    const plannedConfig = plannedCreations.get(configId as string)
    const storedConfig = storedConfigs.get(configId as string)
    const configTypeId = plannedConfig ? (plannedConfig.after.configTypeId as string) : storedConfig?.configTypeId
    const key = toKey({ identityId, serviceId, configTypeId } as Holder)
    const other = names.get(key)
    if (other !== undefined)
      mistakes.add(
        invalidError(`${path}.config`, `is of the same type as ${other}, which the identity has for the service`),
      )
    names.set(key, plannedConfig?.label ?? storedConfig?.name ?? '')
  }
}

function isServiceConfigCreation(step: PlanStep): step is CreateStep {
  return step.action === 'create' && step.fileResource.resource.plural === serviceConfigs.plural
}

/** The service configs that the identities have, with the names of the configs. */
function listStored({ db }: Pick<ReadContext, 'db'>, creations: readonly CreateStep[]) {
  const identityIds = [...new Set(creations.map(({ after }) => after.identityId as string))]
  return db
    .selectFrom('service_configs')
    .innerJoin('configs', 'configs.id', 'service_configs.configId')
    .select(['service_configs.id', 'identityId', 'serviceId', 'service_configs.configTypeId', 'configs.name'])
    .where(isOneOf(db, 'identityId', identityIds))
    .execute()
}

function toKey({ identityId, serviceId, configTypeId }: Holder): string {
  return `${identityId} ${serviceId} ${configTypeId}`
}
