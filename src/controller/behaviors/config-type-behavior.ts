// Config types have a usable schema, and no reserved name.

import type { configTypes } from '../../definitions/resources/config-types.ts'
import type { ConfigSchemas } from '../../definitions/schema/config-schemas.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import type { Context } from '../../storage/transactions/context.ts'

export class ConfigTypeBehavior implements Behavior<typeof configTypes> {
  readonly #schemas: ConfigSchemas

  constructor(schemas: ConfigSchemas) {
    this.#schemas = schemas
  }

  prepareCreate(context: Context, draft: Draft<typeof configTypes>): Promise<undefined> {
    return this.prepareUpdate(context, draft)
  }

  async prepareUpdate(_context: Context, { next, previous }: Draft<typeof configTypes>): Promise<undefined> {
    if (next.name === 'all') throw invalidError('name', 'is a word with a meaning of its own here', next.name)
    if (next.schema && next.schema !== previous?.schema) this.#schemas.assertUsable(next.schema)
  }
}
