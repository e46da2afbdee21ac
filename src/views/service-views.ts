// What a service looks like to one identity: its permissions, the configuration it asked for, its posture queries.
import type { Access } from '../access/access.ts'
import type { ReadContext } from '../context.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import type { Attributed } from '../policy/side.ts'
import { RawJson } from '../records/raw-json.ts'
import type { Facts, LiveView } from '../resources/define.ts'
import { isOneOf } from '../store/untyped.ts'

type Permission = 'Bind' | 'Dial' | 'Invalid'

/** Through whose eyes services are shown. Without a view a service shows nothing that depends on who looks. */
export interface ServiceView {
  readonly identity: Attributed
  readonly isAdmin: boolean
  /** Ids of config types; `all` among them stands for every one. */
  readonly configTypes: readonly string[]
  /** What `config` is where no type was asked for: clients know `{}` from lists, and null from single records. */
  readonly emptyConfig: null | Readonly<Record<string, never>>
}

/** A config as it is shown with a service. */
interface ShownConfig {
  readonly configTypeId: string
  /** JSON text of the member: the name of the type, and the data. */
  readonly member: string
}

export class ServiceViews implements LiveView {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  async describe(context: ReadContext, rows: readonly Facts[], view: unknown): Promise<Record<string, unknown>[]> {
    if (!view) return rows.map(() => ({ config: null, permissions: null, postureQueries: [] }))
    const { identity, isAdmin, configTypes, emptyConfig } = view as ServiceView
    const policies = this.#access.policiesOf(identity)
    const configs = configTypes.length === 0 ? undefined : await configsOf(context, rows, identity.id, configTypes)
    const reach = { Bind: policies.filter(isOfType('Bind')), Dial: policies.filter(isOfType('Dial')) }
    return rows.map(({ id }, at) => {
      const mayBind = this.#access.grantsService(reach.Bind, id)
      const mayDial = this.#access.grantsService(reach.Dial, id)
      const rights = shownRights(mayBind, mayDial, isAdmin)
      if (configs) return { config: new RawJson(configs[at] ?? '{}'), ...rights.members }
      // One object for all that look the same is written once (`finish`).
      return emptyConfig ? rights.withEmptyConfig : rights.withoutConfig
    })
  }
}

/**
 * JSON text of `config` for each service: the wanted ones among its own configs, and those that the identity has in their
 * place, or beside them.
 */
async function configsOf(
  context: ReadContext,
  services: readonly Facts[],
  identityId: string,
  wanted: readonly string[],
): Promise<string[]> {
  const own = services.map((row) => JSON.parse(row.configs as string) as string[])
  const overrides = await overridesOf(context, services, identityId)
  const ids = new Set([...own.flat(), ...[...overrides.values()].flat()])
  const configs = await shownConfigs(context, ids, wanted)
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
async function overridesOf(
  { db }: ReadContext,
  services: readonly Facts[],
  identityId: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = services.map(({ id }) => id)
  const rows = await db
    .selectFrom('service_configs')
    .select(['serviceId', 'configId'])
    .where('identityId', '=', identityId)
    .where(isOneOf(db, 'serviceId', ids))
    .execute()
  const found = new Map<string, string[]>()
  for (const { serviceId, configId } of rows) found.set(serviceId, [...(found.get(serviceId) ?? []), configId])
  return found
}

/** Those of the configs that are of a wanted type. */
async function shownConfigs(
  { db }: ReadContext,
  ids: ReadonlySet<string>,
  wanted: readonly string[],
): Promise<ReadonlyMap<string, ShownConfig>> {
  if (ids.size === 0) return new Map()
  const all = db
    .selectFrom('configs')
    .innerJoin('config_types', 'config_types.id', 'configs.configTypeId')
    .select(['configs.id', 'configs.configTypeId', 'configs.data', 'config_types.name'])
    .where(isOneOf(db, 'configs.id', [...ids]))
  const rows = await (wanted.includes('all') ? all : all.where(isOneOf(db, 'configs.configTypeId', wanted))).execute()
  return new Map(
    rows.map(({ id, configTypeId, name, data }) => [id, { configTypeId, member: `${JSON.stringify(name)}:${data}` }]),
  )
}

const isOfType =
  (wanted: Permission) =>
  ({ type }: IndexedPolicy) =>
    type === wanted

/** The members that tell what may be done with a service: there are few of them, so they are made once. */
interface ShownRights {
  readonly members: Readonly<Record<string, unknown>>
  readonly withEmptyConfig: Record<string, unknown>
  readonly withoutConfig: Record<string, unknown>
}

const shown = new Map<string, ShownRights>()

function shownRights(mayBind: boolean, mayDial: boolean, isAdmin: boolean): ShownRights {
  const permissions: Permission[] = [...(mayBind ? (['Bind'] as const) : []), ...(mayDial ? (['Dial'] as const) : [])]
  if (permissions.length === 0 && isAdmin) permissions.push('Invalid')
  const key = permissions.join()
  let rights = shown.get(key)
  if (!rights) {
    const members = { permissions, postureQueries: permissions.map(passingQuery) }
    rights = { members, withEmptyConfig: { config: {}, ...members }, withoutConfig: { config: null, ...members } }
    shown.set(key, rights)
  }
  return rights
}

/** Clients look for one entry that passes for each permission. */
function passingQuery(permission: Permission) {
  return {
    policyId: `no-posture-checks-${permission.toLowerCase()}`,
    policyType: permission,
    isPassing: true,
    postureQueries: [],
  }
}
