// The places where services are hosted: a router, and the address that it connects to.
import { f } from '../schema/fields.ts'
import { typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import { precedences } from './identities.ts'

export const terminators = defineResource({
  name: 'terminator',
  plural: 'terminators',
  summary: 'A place where a service is hosted: a router, and the address that it connects to.',
  fields: {
    serviceId: f.reference('services', {
      as: 'service',
      input: 'service',
      required: true,
      filter: 'service',
      onDelete: 'cascade',
      unknownStatus: 404,
      summary: 'The hosted service; fixed once the terminator exists.',
    }),
    routerId: f.reference('routers', {
      as: 'router',
      input: 'router',
      required: true,
      filter: 'router',
      onDelete: 'cascade',
      summary: 'The router that connects to the address.',
    }),
    binding: f.text({ required: true, filter: true, summary: 'How the router connects: transport, udp or edge.' }),
    address: f.text({ required: true, minLength: 1, filter: true, summary: 'Such as tcp:localhost:8080.' }),
    cost: f.int({ min: 0, max: 65535, summary: 'What using it costs; the cheapest is preferred.' }),
    precedence: f.choice(precedences, {
      default: 'default',
      summary: 'required before default before failed, whatever the cost.',
    }),
    identity: f.text({
      access: 'create',
      filter: 'instanceId',
      summary: 'By what clients address this one among several hosts; fixed once the terminator exists.',
    }),
    identitySecret: f.text({
      access: 'create',
      nullable: true,
      secret: true,
      format: 'byte',
      summary: 'Base64; every host of the same identity must have it.',
    }),
    hostId: f.text({ access: 'internal', filter: true }),
    // The session by which the host bound; empty if an administrator made it. The session may have ended since.
    sessionId: f.text({ access: 'internal' }),
    // Data that the host passes to those that dial it, such as its public key: header id → base64.
    peerData: f.json(typed<Record<string, string>>({ type: 'object' }), { access: 'internal', default: {} }),
    isSystem: f.bool({ access: 'internal', filter: true }),
  },
  // System records are those that routers make for the hosts connected to them: unchangeable, but an administrator may end them.
  areSystemRecordsDeletable: true,
  computed: { dynamicCost: { type: 'integer', minimum: 0, maximum: 65535 } },
  networkFile: ['serviceId', 'routerId', 'binding', 'address', 'identity'],
  columns: ['id', 'serviceId', 'routerId', 'binding', 'address', 'precedence'],
  example: {
    create: { service: 'web', router: 'edge-north', binding: 'transport', address: 'tcp:localhost:8080' },
    filter: 'binding = "transport"',
  },
})
