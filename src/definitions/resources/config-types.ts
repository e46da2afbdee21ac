// The kinds of configuration that services can carry, each with the JSON Schema its configs must match.
import { f } from '../schema/fields.ts'
import { anyObject } from '../schema/json-schema.ts'
import { tunnelerConfigTypes } from './config-type-schemas.ts'
import { defineResource } from './define.ts'

export const configTypes = defineResource({
  name: 'config-type',
  plural: 'config-types',
  summary: 'A kind of configuration, with the JSON Schema that its configs must match.',
  fields: {
    name: f.name({ summary: 'How the configuration of a service is keyed; "all" is reserved.' }),
    schema: f.json(anyObject, {
      nullable: true,
      // Records show it so, and can be sent back as they were read.
      acceptsNull: true,
      filter: true,
      summary: 'JSON Schema (draft-07) with an object at its root; without one any object will do.',
    }),
  },
  relations: {
    configs: {
      kind: 'hasMany',
      resource: 'configs',
      field: 'configTypeId',
      operationId: 'listConfigsForConfigType',
    },
  },
  builtIn: tunnelerConfigTypes,
  columns: ['id', 'name'],
  example: {
    create: { name: 'printer.v1', schema: { type: 'object', properties: { queue: { type: 'string' } } } },
    filter: 'name contains "v1" sort by name',
  },
})
