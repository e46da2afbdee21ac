// What a client dials or hosts a service with: one record for each sign-in, service and type.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const sessionTypes = ['Dial', 'Bind'] as const

export const sessions = defineResource({
  name: 'session',
  plural: 'sessions',
  summary: 'The right of a sign-in to dial, or to host, one service, as edge routers ask for it.',
  fields: {
    apiSessionId: f.reference('api-sessions', {
      as: 'apiSession',
      access: 'read',
      filter: 'apiSession',
      onDelete: 'cascade',
    }),
    identityId: f.reference('identities', { access: 'read', filter: 'identity', onDelete: 'cascade' }),
    serviceId: f.reference('services', { as: 'service', access: 'read', filter: 'service', onDelete: 'cascade' }),
    type: f.choice(sessionTypes, { access: 'read', filter: true }),
    // Edge routers know the session by it. Worth nothing without the API session it belongs to, and never filterable.
    token: f.text({ access: 'read', unique: true }),
  },
  live: {
    edgeRouters: { type: 'array', items: { type: 'object' } },
    servicePolicies: { type: 'array', items: { type: 'object' } },
  },
  liveFrom: ['identityId', 'apiSessionId', 'serviceId', 'type'],
  describeLive: (context, records, view) => context.controller.serviceSessionViews.describe(context, records, view),
  verbs: ['list', 'detail', 'delete'],
  links: ['route-path'],
  columns: ['id', 'type', 'identityId', 'service', 'createdAt'],
  example: { create: {}, filter: 'type = "Dial"' },
})
