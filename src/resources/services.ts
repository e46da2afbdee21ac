// What the network offers: a name that clients dial and hosts bind, under the policies that admit them.
import { invalidError } from '../errors.ts'
import { f } from '../schema/fields.ts'
import { listOf } from '../schema/json-schema.ts'
import { DURATION_MS } from '../schema/ranges.ts'
import { defineResource } from './define.ts'
import { postureQuerySet } from './posture-queries.ts'

export const terminatorStrategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const

export const services = defineResource({
  name: 'service',
  plural: 'services',
  summary: 'Something that identities reach over the network, by dialing it or by hosting it.',
  fields: {
    name: f.name(),
    roleAttributes: f.roleAttributes({ summary: 'Attributes by which policies find this service.' }),
    configs: f.references('configs', {
      filter: true,
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
  computeFields: (context, records, view) => context.controller.serviceViews.computeFields(context, records, view),
  links: ['configs', 'service-edge-router-policies', 'service-policies', 'terminators'],
  relations: {
    configs: { kind: 'contained', resource: 'configs', field: 'configs', operationId: 'listServiceConfig' },
    'service-policies': {
      kind: 'matched',
      resource: 'service-policies',
      find: async ({ controller }, id) => controller.access.scopes.servicePoliciesOfService(id),
    },
    identities: {
      kind: 'matched',
      resource: 'identities',
      query: { policyType: { type: 'string', enum: ['dial', 'bind'] } },
      find: async ({ controller }, id, query) => controller.access.scopes.identitiesOfService(id, query.policyType),
    },
    'service-edge-router-policies': {
      kind: 'matched',
      resource: 'service-edge-router-policies',
      find: async ({ controller }, id) => controller.access.scopes.serviceEdgeRouterPoliciesOfService(id),
    },
    'edge-routers': {
      kind: 'matched',
      resource: 'edge-routers',
      find: async ({ controller }, id) => controller.access.scopes.edgeRoutersOfService(id),
    },
    terminators: { kind: 'referring', resource: 'terminators', field: 'serviceId' },
  },
  rules: {
    async check(tx, next, previous) {
      if (next.configs.length < 2 || next.configs === previous?.configs) return
      const rows = await tx.db
        .selectFrom('configs')
        .select(['name', 'configTypeId'])
        .where('id', 'in', next.configs)
        .execute()
      const seen = new Map<string, string>()
      for (const { name, configTypeId } of rows) {
        const other = seen.get(configTypeId)
        if (other) throw invalidError('configs', `holds two configs of one type: ${other} and ${name}`, next.configs)
        seen.set(configTypeId, name)
      }
    },
  },
  columns: ['id', 'name', 'roleAttributes', 'terminatorStrategy', 'encryptionRequired'],
  example: {
    create: { name: 'web', encryptionRequired: true, roleAttributes: ['web'] },
    filter: 'name contains "web"',
  },
})
