// Over which edge routers which services are reached.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'
import { semantic } from './service-policies.ts'

export const serviceEdgeRouterPolicies = defineResource({
  name: 'service-edge-router-policy',
  plural: 'service-edge-router-policies',
  summary: 'Lets every service it matches be reached over every edge router it matches.',
  fields: {
    name: f.name(),
    semantic,
    edgeRouterRoles: f.roles('edge-routers', {
      compatibleEmpty: 'null',
      summary: 'The edge routers that may carry them.',
    }),
    serviceRoles: f.roles('services', { compatibleEmpty: 'null', summary: 'The services.' }),
  },
  links: ['edge-routers', 'services'],
  relations: {
    'edge-routers': { kind: 'byRoles', resource: 'edge-routers', field: 'edgeRouterRoles' },
    services: { kind: 'byRoles', resource: 'services', field: 'serviceRoles' },
  },
  columns: ['id', 'name', 'semantic', 'serviceRoles', 'edgeRouterRoles'],
  example: {
    create: { name: 'web-north', semantic: 'AnyOf', serviceRoles: ['#web'], edgeRouterRoles: ['#north'] },
    filter: 'anyOf(serviceRoles) = "#web"',
  },
})
