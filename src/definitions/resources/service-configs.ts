// The configs that one identity gets for a service: in place of the service's own of the same type, or besides them.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const serviceConfigs = defineResource({
  name: 'service-config',
  plural: 'service-configs',
  summary: "A config that one identity gets for a service, in place of the service's own of that type.",
  fields: {
    identityId: f.reference('identities', { access: 'internal', onDelete: 'cascade' }),
    serviceId: f.reference('services', { as: 'service', access: 'read', onDelete: 'cascade' }),
    configId: f.reference('configs', { as: 'config', access: 'read', onDelete: 'restrict' }),
    configTypeId: f.reference('config-types', { access: 'internal', onDelete: 'restrict' }),
  },
  // Made and ended by operations of the identity alone.
  verbs: [],
  networkFile: ['identityId', 'serviceId', 'configId'],
  columns: ['serviceId', 'configId'],
  example: { create: {}, filter: 'id = "…"' },
})
