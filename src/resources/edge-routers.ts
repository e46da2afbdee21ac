// The routers that clients and hosts connect to.
import { f } from '../schema/fields.ts'
import { anyObject, flag, listOf, objectOf, text } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import { routerEnrollmentMembers, routerFields, routerName } from './routers.ts'

export const edgeRouters = defineResource({
  name: 'edge-router',
  plural: 'edge-routers',
  subtypeOf: { resource: 'routers', discriminator: 'isEdge' },
  summary: 'A router that clients and hosts connect to.',
  fields: {
    ...routerFields,
    name: f.name({ ...routerName, acceptsNull: 'patch' }),
    isEdge: f.bool({ access: 'internal', default: true }),
    roleAttributes: f.roleAttributes({
      acceptsNull: true,
      summary: 'Attributes by which policies find this edge router.',
    }),
    isTunnelerEnabled: f.bool({
      filter: true,
      summary: 'Whether the router dials and hosts services itself; it then has an identity of its own.',
    }),
    appData: f.tags({ summary: 'Key-value pairs for applications.' }),
    certPem: f.text({ access: 'read', nullable: true }),
  },
  derived: routerEnrollmentMembers,
  derive: (context, rows) => context.controller.deriveRouters(context, rows),
  dependsOn: { enrollments: ['edgeRouterId'] },
  computed: {
    isOnline: { ...flag, 'x-offline': null },
    hostname: text,
    supportedProtocols: { type: 'object', additionalProperties: text },
    syncStatus: text,
    versionInfo: objectOf({ arch: text, buildDate: text, os: text, revision: text, version: text }),
    interfaces: { ...listOf(anyObject), nullable: true },
  },
  computeFields: (context, records, view) => context.controller.edgeRouterViews.computeFields(context, records, view),
  links: ['edge-router-policies'],
  relations: {
    'edge-router-policies': {
      kind: 'matched',
      resource: 'edge-router-policies',
      find: async ({ controller }, id) => controller.access.scopes.edgeRouterPoliciesOfRouter(id),
    },
    'service-edge-router-policies': {
      kind: 'matched',
      resource: 'service-edge-router-policies',
      find: async ({ controller }, id) => controller.access.scopes.serviceEdgeRouterPoliciesOfRouter(id),
    },
    identities: {
      kind: 'matched',
      resource: 'identities',
      find: async ({ controller }, id) => controller.access.scopes.identitiesOfRouter(id),
    },
    services: {
      kind: 'matched',
      resource: 'services',
      find: async ({ controller }, id) => controller.access.scopes.servicesOfRouter(id),
    },
  },
  rules: {
    async created(tx, router) {
      await tx.controller.routers.enroll(tx, 'erott', router.id)
      await tx.controller.routers.followTunneler(tx, router, undefined)
    },
    updated: (tx, router, previous) => tx.controller.routers.followTunneler(tx, router, previous),
    deleted: (tx, router) => tx.controller.routers.followTunneler(tx, undefined, router),
  },
  columns: ['id', 'name', 'roleAttributes', 'isVerified', 'isOnline'],
  example: {
    create: { name: 'edge-north', roleAttributes: ['north'], isTunnelerEnabled: true },
    filter: 'anyOf(roleAttributes) = "north" and isVerified = true',
  },
})
