// Whether an identity can reach a service, in the record format that existing tools for administrators expect.
import { loadRoleBearer } from '../../src/access/role-bearers.ts'
import type { Context } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import { notFoundError } from '../../src/errors.ts'
import { RawJson, toJsonText } from '../../src/records/raw-json.ts'
import { entityReference, flag, listOf, objectOf, text, whole } from '../../src/schema/json-schema.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'
import { dataResponse } from '../responses.ts'

const advice = objectOf({
  identityId: text,
  identity: entityReference,
  serviceId: text,
  service: entityReference,
  isDialAllowed: flag,
  isBindAllowed: flag,
  identityRouterCount: whole,
  serviceRouterCount: whole,
  commonRouters: listOf(objectOf({ ...entityReference.properties, isOnline: flag })),
})

export const policyAdviceOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'getIdentityPolicyAdvice',
    apis: ['management'],
    topic: 'identities',
    method: 'GET',
    path: '/identities/:id/policy-advice/:serviceId',
    summary: 'Shows whether an identity may dial or host a service, and over which edge routers.',
    access: { permission: 'identity.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: advice },
    async run({ controller, context, params: { id = '', serviceId = '' } }) {
      const identity = await loadRoleBearer(context, id)
      const { index } = controller.access
      const service = await findReference(controller, context, 'services', serviceId)
      if (!service) throw notFoundError('service', serviceId)
      return dataResponse({
        identityId: id,
        identity: await findReference(controller, context, 'identities', id),
        serviceId,
        service,
        isDialAllowed: index.grants(identity, serviceId, 'Dial'),
        isBindAllowed: index.grants(identity, serviceId, 'Bind'),
        identityRouterCount: index.listRouters(identity).length,
        serviceRouterCount: index.listRoutersOfService(serviceId).length,
        commonRouters: await listRouterReferences(controller, context, index.listCommonRouters(identity, serviceId)),
      })
    },
  }),
]

async function findReference(
  controller: Controller,
  context: Context,
  plural: string,
  id: string,
): Promise<RawJson | undefined> {
  const references = await controller.records.references.find(context.db, plural, [id])
  const reference = references.get(id)
  return reference && new RawJson(reference.text)
}

/** References to edge routers, with the state of each. */
async function listRouterReferences(
  controller: Controller,
  { db }: Context,
  ids: readonly string[],
): Promise<RawJson[]> {
  if (ids.length === 0) return []
  const references = await controller.records.references.find(db, 'edge-routers', ids)
  return ids.flatMap((id) => {
    const text = references.get(id)?.text
    const isOnline = toJsonText(controller.routers.network.findRouter(id) !== undefined)
    return text ? [new RawJson(`${text.slice(0, -1)},"isOnline":${isOnline}}`)] : []
  })
}
