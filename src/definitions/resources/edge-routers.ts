// The routers that clients and hosts connect to.
import { f } from '../schema/fields.ts'
import { flag, text } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import {
  fingerprintOptions,
  routerEnrollmentMembers,
  routerFields,
  routerInputs,
  routerName,
  routerWaysIn,
  versionInfo,
} from './routers.ts'

export const edgeRouters = defineResource({
  name: 'edge-router',
  plural: 'edge-routers',
  subtypeOf: { resource: 'routers', discriminator: 'isEdge' },
  summary: 'A router that clients and hosts connect to.',
  fields: {
    ...routerFields,
    name: f.name({ ...routerName, acceptsNull: 'patch' }),
    isEdge: f.bool({ access: 'internal', default: true }),
    fingerprint: f.text({ ...fingerprintOptions, compatibleEmpty: 'absent' }),
    roleAttributes: f.roleAttributes({
      acceptsNull: true,
      compatibleEmpty: 'null',
      summary: 'Attributes by which policies find this edge router.',
    }),
    isTunnelerEnabled: f.bool({
      filter: true,
      summary: 'Whether the router dials and hosts services itself; it then has an identity of its own.',
    }),
    appData: f.tags({ summary: 'Key-value pairs for applications.' }),
    certPem: f.text({ access: 'read', nullable: true }),
  },
  inputs: routerInputs,
  derived: routerEnrollmentMembers,
  optionalMembers: Object.keys(routerEnrollmentMembers),
  dependsOn: { enrollments: ['edgeRouterId'] },
  computed: {
    isOnline: { ...flag, 'x-offline': null },
    hostname: text,
    supportedProtocols: { type: 'object', additionalProperties: text },
    syncStatus: text,
    versionInfo,
  },
  links: ['edge-router-policies'],
  relations: {
    'edge-router-policies': {
      kind: 'custom',
      resource: 'edge-router-policies',
    },
    'service-edge-router-policies': {
      kind: 'custom',
      resource: 'service-edge-router-policies',
    },
    identities: {
      kind: 'custom',
      resource: 'identities',
    },
    services: {
      kind: 'custom',
      resource: 'services',
    },
  },
  isConfidential: true,
  waysIn: routerWaysIn,
  columns: ['id', 'name', 'roleAttributes', 'isVerified', 'isOnline'],
  example: {
    create: { name: 'edge-north', roleAttributes: ['north'], isTunnelerEnabled: true },
    filter: 'anyOf(roleAttributes) = "north" and isVerified = true',
  },
})
