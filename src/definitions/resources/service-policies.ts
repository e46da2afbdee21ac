// The policies that say which identities may dial, or bind, which services, and what they must prove about their machines first.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const semantics = ['AllOf', 'AnyOf'] as const

/** How the roles of a policy's sides are read. */
export const semantic = f.choice(semantics, {
  required: true,
  commandDefault: 'AnyOf',
  filter: true,
  summary: 'Whether a record must have all attributes of a side, or any one. Records named by @id always match.',
})

export const servicePolicies = defineResource({
  name: 'service-policy',
  plural: 'service-policies',
  summary: 'Lets every identity it matches dial, or bind, every service it matches.',
  fields: {
    name: f.name(),
    type: f.choice(['Dial', 'Bind'], { required: true, summary: 'Dial: reach the services. Bind: host them.' }),
    semantic,
    identityRoles: f.roles('identities', { compatibleEmpty: 'null', summary: 'The identities that may.' }),
    serviceRoles: f.roles('services', { compatibleEmpty: 'null', summary: 'The services they may reach or host.' }),
    postureCheckRoles: f.roles('posture-checks', {
      compatibleEmpty: 'null',
      summary: 'The posture checks that all must pass.',
    }),
  },
  symbols: { type: { field: 'type', values: { 1: ['Dial'], 2: ['Bind'] } } },
  links: ['identities', 'posture-checks', 'services'],
  relations: {
    identities: { kind: 'byRoles', resource: 'identities', field: 'identityRoles' },
    services: { kind: 'byRoles', resource: 'services', field: 'serviceRoles' },
    'posture-checks': { kind: 'byRoles', resource: 'posture-checks', field: 'postureCheckRoles' },
  },
  columns: ['id', 'name', 'type', 'semantic', 'identityRoles', 'serviceRoles'],
  example: {
    create: { name: 'staff-web', type: 'Dial', semantic: 'AnyOf', identityRoles: ['#staff'], serviceRoles: ['#web'] },
    filter: 'type = "Dial" and anyOf(identityRoles) = "#staff"',
  },
})
