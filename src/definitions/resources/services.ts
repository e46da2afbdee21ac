// Services: names that clients dial and hosts bind, under the policies that admit them.
import { f } from '../schema/fields.ts'
import { listOf } from '../schema/json-schema.ts'
import { DURATION_MS } from '../schema/ranges.ts'
import { defineResource } from './define.ts'
import { postureQuerySet } from './posture-queries.ts'

const terminatorStrategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const

/** How one of several terminators is chosen. */
export type TerminatorStrategy = (typeof terminatorStrategies)[number]

export const services = defineResource({
  name: 'service',
  plural: 'services',
  summary: 'Something that identities reach over the network, by dialing it or by hosting it.',
  fields: {
    name: f.name(),
    roleAttributes: f.roleAttributes({
      compatibleEmpty: 'null',
      summary: 'Attributes by which policies find this service.',
    }),
    configs: f.references('configs', {
      filter: true,
      compatibleEmpty: 'null',
      onDelete: 'restrict',
      unknownStatus: 404,
      maxItems: 500,
      summary: 'Ids of configs, at most one of each config type.',
    }),
    encryptionRequired: f.bool({
      required: 'create',
      commandDefault: true,
      access: 'create',
      summary: 'Whether clients and hosts must encrypt end to end; fixed once the service exists.',
    }),
    maxIdleTimeMillis: f.int({
      ...DURATION_MS,
      default: 0,
      summary: 'After how long without traffic a circuit is closed; 0 is never.',
    }),
    terminatorStrategy: f.choice(terminatorStrategies, {
      default: 'smartrouting',
      filter: true,
      summary: 'How one of several terminators is chosen.',
    }),
  },
  computed: {
    config: {
      type: 'object',
      additionalProperties: { type: 'object' },
      description: 'Config type name to data, for the config types asked for.',
    },
    permissions: listOf({ type: 'string', enum: ['Bind', 'Dial'] }),
    postureQueries: listOf(postureQuerySet),
  },
  computedFrom: ['configs'],
  links: ['configs', 'service-edge-router-policies', 'service-policies', 'terminators'],
  relations: {
    configs: { kind: 'setMembers', resource: 'configs', field: 'configs', operationId: 'listServiceConfig' },
    'service-policies': {
      kind: 'custom',
      resource: 'service-policies',
    },
    identities: {
      kind: 'custom',
      resource: 'identities',
      query: {
        policyType: {
          type: 'string',
          enum: ['dial', 'bind'],
          description: 'Only those that policies of this type lead to.',
        },
      },
    },
    'service-edge-router-policies': {
      kind: 'custom',
      resource: 'service-edge-router-policies',
    },
    'edge-routers': {
      kind: 'custom',
      resource: 'edge-routers',
    },
    terminators: { kind: 'hasMany', resource: 'terminators', field: 'serviceId' },
  },
  columns: ['id', 'name', 'roleAttributes', 'terminatorStrategy', 'encryptionRequired'],
  example: {
    create: { name: 'web', encryptionRequired: true, roleAttributes: ['web'] },
    filter: 'name contains "web"',
  },
})
