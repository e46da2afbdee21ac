// The addresses that clients may be sent to after they signed in or out by OpenID Connect, as the controller settings say.
import type { Kysely } from 'kysely'
import { controllerSettings, GLOBAL_SETTINGS } from '../../definitions/resources/controller-settings.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

type OidcSettings = Entity<typeof controllerSettings>['oidc']

/** The settings of a controller: its own ones, and the global ones where it has none. */
export function combineOidcSettings(global: OidcSettings, own: OidcSettings): OidcSettings {
  return {
    postLogoutUris: own.postLogoutUris ?? global.postLogoutUris,
    redirectUris: own.redirectUris ?? global.redirectUris,
  }
}

const NONE: OidcSettings = { postLogoutUris: null, redirectUris: null }

export class RegisteredUris implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'registered addresses of OpenID Connect'
  readonly #getControllerId: () => string | undefined
  /** By the id of the settings, which is that of a controller, or `global`. */
  #settings = new Map<string, OidcSettings>()

  /** @param getControllerId the id of this controller's record; undefined until it has one */
  constructor(getControllerId: () => string | undefined) {
    this.#getControllerId = getControllerId
  }

  /** The addresses for clients that have signed in. */
  get redirectUris(): readonly string[] {
    return this.#combine().redirectUris ?? []
  }

  /** The addresses for clients that have signed out. */
  get postLogoutUris(): readonly string[] {
    return this.#combine().postLogoutUris ?? []
  }

  #combine(): OidcSettings {
    const own = this.#settings.get(this.#getControllerId() ?? '') ?? NONE
    return combineOidcSettings(this.#settings.get(GLOBAL_SETTINGS) ?? NONE, own)
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('controller_settings').select(['id', 'oidc']).execute()
    this.#settings = new Map(rows.map(({ id, oidc }) => [id, JSON.parse(oidc) as OidcSettings]))
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== controllerSettings.plural) continue
      if (after) this.#settings.set(id, after.oidc)
      else this.#settings.delete(id)
    }
  }
}
