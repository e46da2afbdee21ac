// The shapes of the records of the fabric API: the members that tools of operators read.
import { defineResource } from '../../../src/definitions/resources/define.ts'
import { precedences } from '../../../src/definitions/resources/identities.ts'
import { STATIC_COST } from '../../../src/definitions/resources/link-settings.ts'
import { interfaceList, routers } from '../../../src/definitions/resources/routers.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import {
  entityReference,
  flag,
  listOf,
  objectOf,
  requiredObject,
  text,
  whole,
} from '../../../src/definitions/schema/json-schema.ts'
import { COUNT } from '../../../src/definitions/schema/ranges.ts'
import type { ReferenceShapes } from '../../responses/record-views.ts'

export const routerShape = defineResource({
  name: 'router',
  plural: 'routers',
  summary: 'A router of the network; edge routers are among them.',
  fields: {
    name: routers.fields.name,
    fingerprint: f.hex({
      nullable: true,
      acceptsNull: true,
      summary: 'SHA-1 of its certificate; null before it enrolls.',
    }),
    cost: routers.fields.cost,
    noTraversal: routers.fields.noTraversal,
    disabled: routers.fields.disabled,
    interfaces: f.json(interfaceList, { access: 'read', nullable: true, summary: 'Null before it reports any.' }),
  },
  inputs: { id: f.text({ access: 'create', required: true, summary: 'The common name of its certificate.' }) },
  computed: {
    connected: flag,
    listenerAddresses: {
      ...listOf(requiredObject({ address: text, protocol: text })),
      nullable: true,
      description: 'Where it accepts links of other routers; null while it is not connected, or accepts none.',
    },
    versionInfo: {
      ...objectOf({ arch: text, buildDate: text, os: text, revision: text, version: text }),
      description: 'Absent while it is not connected.',
    },
  },
  // The software of a router that is not connected is unknown.
  optionalMembers: ['versionInfo'],
  links: ['terminators'],
  columns: [],
  example: { create: {}, filter: 'connected = true' },
})

export const serviceShape = defineResource({
  name: 'service',
  plural: 'services',
  summary: 'A service, as far as routers are concerned.',
  fields: {
    name: services.fields.name,
    terminatorStrategy: services.fields.terminatorStrategy,
    maxIdleTimeMillis: services.fields.maxIdleTimeMillis,
  },
  links: ['terminators'],
  columns: [],
  example: { create: {}, filter: 'name contains "web"' },
})

export const terminatorShape = defineResource({
  name: 'terminator',
  plural: 'terminators',
  summary: 'A place where a service is hosted.',
  fields: {
    serviceId: f.reference('services', { as: 'service', input: 'service', required: true, unknownStatus: 404 }),
    routerId: f.reference('routers', { as: 'router', input: 'router', required: true, unknownStatus: 404 }),
    binding: f.text({
      required: true,
      summary: 'How the router connects; if it is empty, transport or udp by the address.',
    }),
    address: f.text({ required: true, minLength: 1, summary: 'What the router connects to.' }),
    cost: f.int({ min: 0, max: 65_535 }),
    precedence: f.choice(precedences, { default: 'default' }),
    instanceId: f.text({ access: 'create', summary: 'By what clients address this one among several hosts.' }),
    instanceSecret: f.text({ access: 'create', nullable: true, secret: true, format: 'byte' }),
    hostId: f.text({ access: 'create', summary: 'The identity that hosts the service; empty if there is none.' }),
  },
  computed: { dynamicCost: whole },
  columns: [],
  example: { create: {}, filter: 'service.name = "web"' },
})

export const linkShape = defineResource({
  name: 'link',
  plural: 'links',
  summary: 'A connection between two routers.',
  fields: {
    // Routers report links, and clients do not expect these members of them.
    createdAt: f.time({ access: 'internal' }),
    updatedAt: f.time({ access: 'internal' }),
    tags: f.tags({ access: 'internal' }),
    protocol: f.text({ access: 'read', filter: true }),
    dialAddress: f.text({ access: 'read', filter: true }),
    sourceRouterId: f.reference('routers', { access: 'read', as: 'sourceRouter', filter: 'sourceRouter' }),
    destRouterId: f.reference('routers', { access: 'read', as: 'destRouter', filter: 'destRouter' }),
    state: f.text({ access: 'read', filter: true, summary: 'Pending or Connected.' }),
    down: f.bool({ filter: true, summary: 'Whether an administrator keeps paths from using it.' }),
    staticCost: f.int({ ...STATIC_COST, filter: true }),
    sourceLatency: f.int({ ...COUNT, access: 'read', filter: true, summary: 'In nanoseconds, by its source.' }),
    destLatency: f.int({ ...COUNT, access: 'read', filter: true, summary: 'In nanoseconds, by its destination.' }),
    cost: f.int({ ...COUNT, access: 'read', filter: true }),
    iteration: f.int({ ...COUNT, access: 'read', filter: true }),
  },
  columns: [],
  example: { create: {}, filter: 'state = "Connected"' },
})

export const circuitShape = defineResource({
  name: 'circuit',
  plural: 'circuits',
  summary: 'The path of one connection, from the router of the client to a terminator.',
  fields: {
    clientId: f.text({ access: 'read', filter: true, summary: 'The session by which the client dialed.' }),
    serviceId: f.reference('services', { access: 'read', as: 'service', filter: 'service' }),
    terminatorId: f.reference('terminators', { access: 'read', as: 'terminator', filter: 'terminator' }),
  },
  computed: {
    path: requiredObject({
      nodes: { ...listOf(entityReference), description: 'Its routers, that of the client first.' },
      links: { ...listOf(entityReference), nullable: true, description: 'Between the routers; null if there is one.' },
    }),
  },
  columns: [],
  example: { create: {}, filter: 'service.name = "web"' },
})

/** How the fabric API shows one record in another. */
export const fabricReferenceShapes: ReferenceShapes = {
  routers: routerShape,
  services: serviceShape,
  terminators: terminatorShape,
  links: linkShape,
  circuits: circuitShape,
}
