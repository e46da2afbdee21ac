// The services that carry a config, and the identities that have it in place of another: a change of the config concerns them.
import { SetMap } from '../policy/set-map.ts'

/** An identity's config for a service, in place of the service's own. */
export interface Override {
  readonly identityId: string
  readonly serviceId: string
  readonly configId: string
}

export class ConfigUsage {
  readonly #configsByService = new Map<string, readonly string[]>()
  readonly #servicesByConfig = new SetMap()
  readonly #overrides = new Map<string, Override>()
  readonly #overridesByConfig = new SetMap()
  readonly #overridesByIdentity = new SetMap()

  setService(id: string, configIds: readonly string[]): void {
    this.deleteService(id)
    if (configIds.length === 0) return
    this.#configsByService.set(id, configIds)
    for (const configId of configIds) this.#servicesByConfig.add(configId, id)
  }

  deleteService(id: string): void {
    for (const configId of this.#configsByService.get(id) ?? []) this.#servicesByConfig.delete(configId, id)
    this.#configsByService.delete(id)
  }

  setOverride(id: string, { identityId, serviceId, configId }: Override): void {
    this.deleteOverride(id)
    this.#overrides.set(id, { identityId, serviceId, configId })
    this.#overridesByConfig.add(configId, id)
    this.#overridesByIdentity.add(identityId, id)
  }

  deleteOverride(id: string): void {
    const override = this.#overrides.get(id)
    if (!override) return
    this.#overridesByConfig.delete(override.configId, id)
    this.#overridesByIdentity.delete(override.identityId, id)
    this.#overrides.delete(id)
  }

  /** Ids of the services that carry the config. */
  findServices(configId: string): Iterable<string> {
    return this.#servicesByConfig.get(configId)
  }

  /** Ids of the identities that get the config in place of another, for some service. */
  findIdentities(configId: string): Set<string> {
    return new Set(this.#resolve(this.#overridesByConfig.get(configId)).map(({ identityId }) => identityId))
  }

  /** The configs that an identity gets in place of those of services. */
  findOverrides(identityId: string): Override[] {
    return this.#resolve(this.#overridesByIdentity.get(identityId))
  }

  #resolve(ids: Iterable<string>): Override[] {
    return [...ids].flatMap((id) => this.#overrides.get(id) ?? [])
  }
}
