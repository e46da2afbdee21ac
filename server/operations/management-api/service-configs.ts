// Overrides of service configs for one identity.
import { addOverrides, removeOverrides, type ServiceConfig } from '../../../src/access/config-overrides.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { entityReference, listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { RawJson, toJsonText } from '../../../src/storage/records/raw-json.ts'
import { findReferences } from '../../../src/storage/records/references.ts'
import { type AnyOperation, defineOperation, readListBody } from '../../api/operation.ts'
import { emptyResponse, listResponse } from '../../api/responses.ts'
import { requireRow } from '../../responses/record-responses.ts'

// Enough for the overrides of one identity for half of the services of a large network.
const MAX_PAIRS = 1000

const common = { apis: ['management'], topic: 'identities', path: '/identities/:id/service-configs' } as const
const pair = {
  serviceId: f.reference('services', { required: true, summary: 'The service.' }),
  configId: f.reference('configs', { required: true, summary: 'The config that the identity gets for it.' }),
}
const serviceConfig = requiredObject({
  serviceId: text,
  service: entityReference,
  configId: text,
  config: entityReference,
})
const UPDATE = { permission: 'identity.update', grantedTo: 'administrator', records: identities.plural } as const

export const serviceConfigOperations: readonly AnyOperation[] = [
  defineOperation({
    ...common,
    id: 'listIdentitysServiceConfigs',
    method: 'GET',
    summary: "Lists the configs that an identity gets for services in place of the services' own, all of them.",
    access: { ...UPDATE, permission: 'identity.read' },
    returns: { kind: 'data', schema: listOf(serviceConfig), isPage: true },
    async run({ context, params }) {
      const { id } = await requireRow(context, identities, params.id)
      const rows = await context.db
        .selectFrom('service_configs')
        .select(['serviceId', 'configId'])
        .where('identityId', '=', id)
        .orderBy('serviceId')
        .orderBy('configId')
        .execute()
      const services = await findReferences(
        context.db,
        'services',
        rows.map(({ serviceId }) => serviceId),
      )
      const configs = await findReferences(
        context.db,
        'configs',
        rows.map(({ configId }) => configId),
      )
      const texts = rows.map(({ serviceId, configId }) =>
        toJsonText({
          serviceId,
          service: new RawJson(services.get(serviceId)?.text ?? 'null'),
          configId,
          config: new RawJson(configs.get(configId)?.text ?? 'null'),
        }),
      )
      return listResponse(texts, { limit: texts.length, offset: 0, total: texts.length }, '[]')
    },
  }),
  defineOperation<readonly ServiceConfig[]>({
    ...common,
    id: 'associateIdentitysServiceConfigs',
    method: 'POST',
    summary: "Gives an identity configs for services in place of the services' own of the same types.",
    access: UPDATE,
    body: readListBody<ServiceConfig>(pair, { maxItems: MAX_PAIRS }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await addOverrides(controller.entities, context, params.id ?? '', body)
      return emptyResponse()
    },
  }),
  defineOperation<readonly ServiceConfig[]>({
    ...common,
    id: 'disassociateIdentitysServiceConfigs',
    method: 'DELETE',
    summary: 'Removes such configs from an identity: for each service, the override of the same config type.',
    access: UPDATE,
    body: readListBody<ServiceConfig>(pair, { maxItems: MAX_PAIRS, isRequired: false }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await removeOverrides(controller.entities, context, params.id ?? '', body)
      return emptyResponse()
    },
  }),
]
