// What a service looks like to one identity: its permissions, the configuration it asked for, its posture queries.
import type { Access } from '../access/access.ts'
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import { RawJson } from '../records/raw-json.ts'
import type { Facts, LiveView } from '../resources/define.ts'

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

export class ServiceViews implements LiveView {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  async describe(context: ReadContext, rows: readonly Facts[], view: unknown): Promise<Record<string, unknown>[]> {
    if (!view) return rows.map(() => ({ config: null, permissions: null, postureQueries: [] }))
    const { identity, isAdmin, configTypes, emptyConfig } = view as ServiceView
    const policies = this.#access.policiesOf(identity)
    const configs = configTypes.length === 0 ? undefined : await this.#configs(context, rows, configTypes)
    return rows.map((row) => {
      const granting = this.#access.granting(policies, row.id)
      const permissions = permissionsFrom(new Set(granting.map(({ type }) => type)), isAdmin)
      return {
        config: configs ? new RawJson(configs.get(row.id) ?? '{}') : emptyConfig,
        permissions,
        postureQueries: permissions.map(passingQuery),
      }
    })
  }

  /** JSON text of `config` for each service that carries a config of the wanted types. */
  async #configs({ db }: ReadContext, rows: readonly Facts[], wanted: readonly string[]): Promise<Map<string, string>> {
    const ids = new Set(rows.flatMap((row) => JSON.parse(row.configs as string) as string[]))
    if (ids.size === 0) return new Map()
    const found = await db
      .selectFrom('configs')
      .innerJoin('config_types', 'config_types.id', 'configs.configTypeId')
      .select(['configs.id', 'configs.configTypeId', 'configs.data', 'config_types.name'])
      .where('configs.id', 'in', [...ids])
      .execute()
    const isWanted = (type: string) => wanted.includes('all') || wanted.includes(type)
    const texts = new Map(
      found
        .filter(({ configTypeId }) => isWanted(configTypeId))
        .map(({ id, name, data }) => [id, `${JSON.stringify(name)}:${data}`]),
    )
    return new Map(
      rows.map((row) => {
        const members = (JSON.parse(row.configs as string) as string[]).flatMap((id) => texts.get(id) ?? [])
        return [row.id, `{${members.join(',')}}`]
      }),
    )
  }
}

function permissionsFrom(types: ReadonlySet<string | undefined>, isAdmin: boolean): Permission[] {
  const permissions = (['Bind', 'Dial'] as const).filter((type) => types.has(type))
  return permissions.length === 0 && isAdmin ? ['Invalid'] : permissions
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
