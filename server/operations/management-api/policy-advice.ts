// Whether an identity can reach a service, in the record format that existing tools for administrators expect.

import type { Controller } from '../../../src/controller/controller.ts'
import { edgeRouters } from '../../../src/definitions/resources/edge-routers.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { EMPTY_OR_NULL, type JsonForm, toForm } from '../../../src/definitions/schema/json-forms.ts'
import {
  entityReference,
  flag,
  listOf,
  orNull,
  requiredObject,
  text,
  whole,
} from '../../../src/definitions/schema/json-schema.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import type { RoleBearer } from '../../../src/policy/role-selector.ts'
import { prepareQuery } from '../../../src/storage/prepared-queries.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { renderReference } from '../../../src/storage/records/references.ts'
import { type CachedRecord, renderReferenceTo } from '../../../src/storage/records/render-records.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { JSON_FORMS } from '../../api/dialects.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

const advice = requiredObject({
  identityId: text,
  identity: entityReference,
  serviceId: text,
  service: entityReference,
  isDialAllowed: flag,
  isBindAllowed: flag,
  identityRouterCount: whole,
  serviceRouterCount: whole,
  commonRouters: orNull(listOf(requiredObject({ ...entityReference.properties, isOnline: flag }))),
})

export const policyAdviceOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'getIdentityPolicyAdvice',
    apis: ['management'],
    topic: 'identities',
    method: 'GET',
    path: '/identities/:id/policy-advice/:serviceId',
    summary: 'Shows whether an identity may dial or host a service, and over which edge routers.',
    access: { permission: 'service.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: advice },
    async run({ controller, context, dialect, params: { id = '', serviceId = '' } }) {
      const { cache } = controller.records
      const identity = await findIdentity(controller, context, id)
      if (!identity) throw notFoundError('identity', id)
      const [service] = await cache.findByIds(context, services, [serviceId])
      if (!service) throw notFoundError('service', serviceId)
      const { index } = controller.access
      const granting = index.filterGrantingService(index.findServicePolicies(identity), serviceId)
      const { identityCount, serviceCount, commonIds } = index.compareRouters(identity, serviceId)
      const routers = await cache.findByIds(context, edgeRouters, commonIds)
      return dataResponse({
        identityId: id,
        identity: identity.reference,
        serviceId,
        service: new RawJson(renderReferenceTo(services, service)),
        isDialAllowed: granting.some(({ type }) => type === 'Dial'),
        isBindAllowed: granting.some(({ type }) => type === 'Bind'),
        identityRouterCount: identityCount,
        serviceRouterCount: serviceCount,
        commonRouters: renderRouters(controller, routers, JSON_FORMS[dialect]),
      })
    },
  }),
]

/** An identity as policies see it, and as it is shown. */
interface AdvisedIdentity extends RoleBearer {
  readonly reference: RawJson
}

/** Reads the identity from its cached record, or by one statement: to render the record would cost more than the advice. */
async function findIdentity(
  { records }: Controller,
  { db }: Context,
  id: string,
): Promise<AdvisedIdentity | undefined> {
  const record = records.cache.get(identities, id)
  if (record) return toAdvisedIdentity(id, record.computedInput.roleAttributes, renderReferenceTo(identities, record))
  const [row] = await findIdentityRow(db, id)
  return row && toAdvisedIdentity(id, row.roleAttributes, renderReference(identities, row).text)
}

const findIdentityRow = prepareQuery((db, id: string) =>
  db.selectFrom('identities').select(['id', 'name', 'authPolicyId', 'roleAttributes']).where('id', '=', id),
)

function toAdvisedIdentity(id: string, roleAttributes: unknown, reference: string): AdvisedIdentity {
  return { id, attributes: JSON.parse(roleAttributes as string) as string[], reference: new RawJson(reference) }
}

/** References to edge routers, as one JSON array, with the state of each. */
function renderRouters({ routers }: Controller, records: readonly CachedRecord[], form: JsonForm): RawJson {
  if (records.length === 0) return new RawJson(toForm(EMPTY_OR_NULL, form))
  const texts = records.map((record) => {
    const isOnline = routers.network.findRouter(record.id) !== undefined
    return `${renderReferenceTo(edgeRouters, record).slice(0, -1)},"isOnline":${isOnline}}`
  })
  return new RawJson(`[${texts.join(',')}]`)
}
