// One piece of configuration for services: data of a config type, checked against the type's schema.
import { f } from '../schema/fields.ts'
import { anyObject } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

export const configs = defineResource({
  name: 'config',
  plural: 'configs',
  summary: 'Data of a config type, which services hand to the clients that reach them.',
  fields: {
    name: f.name(),
    configTypeId: f.reference('config-types', {
      as: 'configType',
      required: 'create',
      access: 'create',
      filter: 'type',
      unknown: 'type',
      onDelete: 'restrict',
      summary: 'The config type; fixed once the config exists.',
    }),
    data: f.json(anyObject, { required: true, isTypeRule: true, summary: 'What the type describes.' }),
  },
  relations: {
    services: { kind: 'inSet', resource: 'services', field: 'configs' },
  },
  columns: ['id', 'name', 'configTypeId'],
  example: {
    create: {
      name: 'web-intercept',
      configTypeId: 'intercept.v1',
      data: { protocols: ['tcp'], addresses: ['web.internal'], portRanges: [{ low: 443, high: 443 }] },
    },
    filter: 'type = "g7cIWbcGg" and name contains "web"',
  },
})
