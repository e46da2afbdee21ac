// Services: what they refer to, and what one looks like to an identity: permissions, configuration, posture queries.

import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { ComputedInput, Entity } from '../../definitions/resources/define.ts'
import type { services } from '../../definitions/resources/services.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { Behavior, FindRelated } from '../../storage/behavior.ts'
import { RawJson } from '../../storage/records/raw-json.ts'
import type { ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import { getViewer, type Viewer } from '../viewers.ts'
import { renderPostureQuerySets } from './posture-query-sets.ts'
import { ServiceRights } from './service-rights.ts'

type Service = Entity<typeof services>

/** How services are shown; without it as the caller sees them, and without configuration. */
export interface ServiceView {
  readonly viewer: Viewer
  /** Ids of config types; `all` among them stands for every one. */
  readonly configTypes: readonly string[]
}

/** A config as it is shown with a service. */
interface ConfigMember {
  readonly configTypeId: string
  /** JSON text of the member: the name of the type, and the data. */
  readonly member: string
}

/** The collaborators of the behavior of services. */
interface ServiceBehaviorParts {
  readonly access: Access
  readonly apiSessions: ApiSessions
}

export class ServiceBehavior implements Behavior<typeof services> {
  readonly #access: Access
  readonly #apiSessions: ApiSessions
  readonly relations: Readonly<Record<string, FindRelated>>

  constructor({ access, apiSessions }: ServiceBehaviorParts) {
    this.#access = access
    this.#apiSessions = apiSessions
    const { scopes } = access
    this.relations = {
      'service-policies': (_context, id) => scopes.findServicePoliciesOfService(id),
      identities: (_context, id, { policyType }) => scopes.findIdentitiesOfService(id, policyType),
      'service-edge-router-policies': (_context, id) => scopes.findServiceEdgeRouterPoliciesOfService(id),
      'edge-routers': (_context, id) => scopes.findEdgeRoutersOfService(id),
    }
  }

  /** A service has one config of a type. @throws COULD_NOT_VALIDATE */
  async check(tx: WriteContext, next: Service, previous: Service | undefined): Promise<void> {
    if (next.configs.length < 2 || next.configs === previous?.configs) return
    const rows = await tx.db
      .selectFrom('configs')
      .select(['name', 'configTypeId'])
      .where('id', 'in', next.configs)
      .execute()
    const namesByType = new Map<string, string>()
    for (const { name, configTypeId } of rows) {
      const other = namesByType.get(configTypeId)
      if (other) throw invalidError('configs', `holds two configs of one type: ${other} and ${name}`, next.configs)
      namesByType.set(configTypeId, name)
    }
  }

  async computeFields(
    context: ReadContext,
    rows: readonly ComputedInput[],
    view: unknown,
  ): Promise<Record<string, unknown>[]> {
    const { viewer, configTypes }: ServiceView = isServiceView(view)
      ? view
      : { viewer: await getViewer(this.#apiSessions, context), configTypes: [] }
    const policies = this.#access.index.findGrantingPolicies(viewer.identity)
    const configs =
      configTypes.length === 0 ? undefined : await renderConfigs(context, rows, viewer.identity.id, configTypes)
    const rights = new ServiceRights(await renderPostureQuerySets(this.#access, context, policies, viewer))
    return rows.map(({ id }, at) => {
      const fields = rights.describe(this.#access.filterGranting(policies, id))
      // One object for all that look the same is written once (`renderComputedTails`).
      return configs ? { config: new RawJson(configs[at] ?? '{}'), ...fields.members } : fields.withoutConfig
    })
  }
}

function isServiceView(view: unknown): view is ServiceView {
  return view !== undefined
}

/**
 * JSON text of `config` for each service: of these config types, its own configs and those that the identity has in their place,
 * or besides them.
 */
async function renderConfigs(
  context: ReadContext,
  services: readonly ComputedInput[],
  identityId: string,
  configTypes: readonly string[],
): Promise<string[]> {
  const own = services.map((row) => JSON.parse(row.configs as string) as string[])
  const overrides = await loadOverrides(context, services, identityId)
  const ids = new Set([...own.flat(), ...[...overrides.values()].flat()])
  const configs = await loadConfigMembers(context, ids, configTypes)
  return services.map(({ id }, at) => {
    // By type, and the identity's own last: of two configs of one type the later one stays.
    const members = new Map<string, string>()
    for (const configId of [...(own[at] ?? []), ...(overrides.get(id) ?? [])]) {
      const config = configs.get(configId)
      if (config) members.set(config.configTypeId, config.member)
    }
    return `{${[...members.values()].join(',')}}`
  })
}

/** Service → the configs that the identity has for it in place of the service's own. */
async function loadOverrides(
  { db }: ReadContext,
  services: readonly ComputedInput[],
  identityId: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = services.map(({ id }) => id)
  const rows = await db
    .selectFrom('service_configs')
    .select(['serviceId', 'configId'])
    .where('identityId', '=', identityId)
    .where(isOneOf(db, 'serviceId', ids))
    .execute()
  const configIdsByService = new Map<string, string[]>()
  for (const { serviceId, configId } of rows)
    configIdsByService.set(serviceId, [...(configIdsByService.get(serviceId) ?? []), configId])
  return configIdsByService
}

/** Filters configs to those of these config types. */
async function loadConfigMembers(
  { db }: ReadContext,
  ids: ReadonlySet<string>,
  configTypes: readonly string[],
): Promise<ReadonlyMap<string, ConfigMember>> {
  if (ids.size === 0) return new Map()
  const all = db
    .selectFrom('configs')
    .innerJoin('config_types', 'config_types.id', 'configs.configTypeId')
    .select(['configs.id', 'configs.configTypeId', 'configs.data', 'config_types.name'])
    .where(isOneOf(db, 'configs.id', [...ids]))
  const rows = await (configTypes.includes('all')
    ? all
    : all.where(isOneOf(db, 'configs.configTypeId', configTypes))
  ).execute()
  return new Map(
    rows.map(({ id, configTypeId, name, data }) => [id, { configTypeId, member: `${JSON.stringify(name)}:${data}` }]),
  )
}
