// Configs match the schema of their type.
import type { Behavior, Draft } from '../behavior.ts'
import type { Context } from '../context.ts'
import type { configs } from '../resources/configs.ts'
import type { ConfigSchemas } from '../schema/config-schemas.ts'

export class ConfigBehavior implements Behavior<typeof configs> {
  readonly #schemas: ConfigSchemas

  constructor(schemas: ConfigSchemas) {
    this.#schemas = schemas
  }

  async prepare({ db }: Context, { next, previous }: Draft<typeof configs>): Promise<undefined> {
    // A schema that was tightened later binds new data only: what is stored stays valid until it is sent again.
    if (previous && next.data === previous.data) return
    const type = await db
      .selectFrom('config_types')
      .select('schema')
      .where('id', '=', next.configTypeId)
      .executeTakeFirst()
    if (type?.schema) this.#schemas.assertMatches(type.schema, next.data)
  }
}
