// Sessions, with which a client dials or hosts a service: one record for each sign-in, service and type.
import { f } from '../schema/fields.ts'
import { entityReference, flag, listOf, orNull, requiredObject, text, whole } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

export const sessionTypes = ['Dial', 'Bind'] as const

const addresses = { type: 'object', additionalProperties: text }

/** An edge router as clients are told about it, who have to connect to it. */
const usableRouter = requiredObject({
  id: text,
  name: text,
  hostname: text,
  isOnline: flag,
  supportedProtocols: addresses,
  urls: addresses,
  syncStatus: text,
  cost: whole,
  noTraversal: flag,
  disabled: flag,
})

export const sessions = defineResource({
  name: 'session',
  plural: 'sessions',
  summary: 'The right of a sign-in to dial, or to host, one service, as edge routers ask for it.',
  // Clients make and end them all the time. The rights behind them are in the policies, whose changes are audited.
  audit: 'none',
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
    // A token by which routers of release 1 know the session. Worth nothing without the API session it belongs to, and never filterable.
    opaqueToken: f.text({ access: 'internal', unique: true, secret: true }),
    // Whether its client asked for it when tokens were signed, and so has a signed one.
    hasSignedToken: f.bool({ access: 'internal', default: false }),
  },
  computed: {
    // Clients show it to edge routers: the opaque one, or a signed one that routers of release 2 verify.
    token: text,
    edgeRouters: orNull(listOf(usableRouter)),
    servicePolicies: listOf(entityReference),
  },
  // The response to a new session lacks it.
  optionalMembers: ['servicePolicies'],
  computedFrom: ['identityId', 'apiSessionId', 'serviceId', 'type'],
  verbs: ['list', 'detail', 'delete'],
  links: ['route-path'],
  credentials: ['token'],
  isConfidential: true,
  columns: ['id', 'type', 'identityId', 'service', 'createdAt'],
  example: { create: {}, filter: 'type = "Dial"' },
})
