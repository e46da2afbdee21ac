// The settings of links: stored, and in memory for the links that routers report.
//
// They belong to the ends of a link (both routers, protocol and address), because its id changes when the dialing router
// starts again. Links and their latencies are in memory only, and routers report them again after a restart.
import type { Kysely } from 'kysely'
import { linkSettings } from '../../definitions/resources/link-settings.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get, newEntity } from '../../storage/entities/entities.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import { DEFAULT_LINK_SETTINGS, type LinkEnds, type LinkSettings, toLinkKey } from './link.ts'

type SettingsListener = (ends: LinkEnds, settings: LinkSettings) => void

export class StoredLinkSettings implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'settings of links'
  readonly #entities: EntityStore
  /** By the key of the ends. */
  #byKey = new Map<string, LinkSettings>()
  readonly #listeners: SettingsListener[] = []

  constructor(entities: EntityStore) {
    this.#entities = entities
  }

  /** The settings for the links with these ends; the defaults if none are stored. */
  get(ends: LinkEnds): LinkSettings {
    return this.#byKey.get(toLinkKey(ends)) ?? DEFAULT_LINK_SETTINGS
  }

  /** Runs a listener for each change that was committed. */
  onChange(listener: SettingsListener): void {
    this.#listeners.push(listener)
  }

  /** Stores what is set for the links with these ends; what is missing stays as it is. */
  async change(context: Context, ends: LinkEnds, changes: Partial<LinkSettings>): Promise<void> {
    if (Object.keys(changes).length === 0) return
    const { sourceId, destinationId, protocol, dialAddress } = ends
    await context.write(async (tx) => {
      const id = await findId(tx, ends)
      if (id !== undefined) {
        await this.#entities.update(tx, linkSettings, await get(tx, linkSettings, id), changes)
        return
      }
      const values = { sourceId, destinationId, protocol, dialAddress, ...DEFAULT_LINK_SETTINGS, ...changes }
      await this.#entities.insert(tx, linkSettings, newEntity(tx, linkSettings, values))
    })
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('link_settings')
      .select(['sourceId', 'destinationId', 'protocol', 'dialAddress', 'isDown', 'staticCost'])
      .execute()
    this.#byKey = new Map(
      rows.map(({ isDown, staticCost, ...ends }) => [toLinkKey(ends), { isDown: isDown === 1, staticCost }]),
    )
  }

  apply({ changes }: Commit): void {
    for (const { resource, before, after } of changes) {
      if (resource !== linkSettings.plural) continue
      const ends = after ?? before
      if (!ends) continue
      const key = toLinkKey(ends)
      if (after) this.#byKey.set(key, { isDown: ends.isDown, staticCost: ends.staticCost })
      else this.#byKey.delete(key)
      const settings = this.get(ends)
      for (const listener of this.#listeners) listener(ends, settings)
    }
  }
}

async function findId(tx: WriteContext, { sourceId, destinationId, protocol, dialAddress }: LinkEnds) {
  const row = await tx.db
    .selectFrom('link_settings')
    .select('id')
    .where('sourceId', '=', sourceId)
    .where('destinationId', '=', destinationId)
    .where('protocol', '=', protocol)
    .where('dialAddress', '=', dialAddress)
    .executeTakeFirst()
  return row?.id
}
