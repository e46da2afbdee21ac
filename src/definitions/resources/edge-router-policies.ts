// The policies that say which identities may use which edge routers.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'
import { semantic } from './service-policies.ts'

export const edgeRouterPolicies = defineResource({
  name: 'edge-router-policy',
  plural: 'edge-router-policies',
  summary: 'Lets every identity it matches use every edge router it matches.',
  fields: {
    name: f.name(),
    semantic,
    edgeRouterRoles: f.roles('edge-routers', { compatibleEmpty: 'null', summary: 'The edge routers they may use.' }),
    identityRoles: f.roles('identities', { compatibleEmpty: 'null', summary: 'The identities that may.' }),
    isSystem: f.bool({
      access: 'read',
      filter: true,
      summary: 'Whether the controller made it, to let a router that is an identity too use itself.',
    }),
  },
  links: ['edge-routers', 'identities'],
  relations: {
    'edge-routers': { kind: 'byRoles', resource: 'edge-routers', field: 'edgeRouterRoles' },
    identities: { kind: 'byRoles', resource: 'identities', field: 'identityRoles' },
  },
  columns: ['id', 'name', 'semantic', 'identityRoles', 'edgeRouterRoles'],
  example: {
    create: { name: 'staff-north', semantic: 'AnyOf', identityRoles: ['#staff'], edgeRouterRoles: ['#north'] },
    filter: 'isSystem = false sort by name',
  },
})
