// Configs match the schema of their type.

import type { configs } from '../../definitions/resources/configs.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { CheckedData, ConfigSchemas } from '../../definitions/schema/config-schemas.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'

type ConfigRecord = Entity<typeof configs>

export class ConfigBehavior implements Behavior<typeof configs, CheckedData | undefined> {
  readonly #schemas: ConfigSchemas

  constructor(schemas: ConfigSchemas) {
    this.#schemas = schemas
  }

  prepareCreate(context: Context, { next }: Draft<typeof configs>): Promise<CheckedData> {
    return this.#requireMatch(context, next, undefined)
  }

  async prepareUpdate(context: Context, { next, previous }: Draft<typeof configs>): Promise<CheckedData | undefined> {
    return isToBeChecked(next, previous) ? this.#requireMatch(context, next, undefined) : undefined
  }

  /** The type may be created, or have another schema, since the data was checked. */
  async check(
    tx: WriteContext,
    next: ConfigRecord,
    previous: ConfigRecord | undefined,
    prepared: CheckedData | undefined,
  ): Promise<void> {
    if (isToBeChecked(next, previous)) await this.#requireMatch(tx, next, prepared)
  }

  async #requireMatch(
    { db }: Pick<ReadContext, 'db'>,
    { configTypeId, data }: ConfigRecord,
    checked: CheckedData | undefined,
  ): Promise<CheckedData> {
    const type = await db.selectFrom('config_types').select('schema').where('id', '=', configTypeId).executeTakeFirst()
    const schema = type?.schema ?? null
    if (schema !== null && schema !== checked?.schema) this.#schemas.assertMatches(schema, data)
    return { schema }
  }
}

/** A schema that was tightened later binds new data only: what is stored stays valid until it is sent again. */
function isToBeChecked(next: ConfigRecord, previous: ConfigRecord | undefined): boolean {
  return !previous || next.data !== previous.data
}
