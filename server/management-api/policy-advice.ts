// Whether an identity can reach a service, in the record format that existing tools for administrators expect.
import { type Awaitable, whenReady } from '../../src/awaitable.ts'
import type { Context } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import { notFoundError } from '../../src/errors.ts'
import { RawJson } from '../../src/records/raw-json.ts'
import { renderReference } from '../../src/records/reference-cache.ts'
import { identities } from '../../src/resources/identities.ts'
import { entityReference, flag, listOf, objectOf, text, whole } from '../../src/schema/json-schema.ts'
import { prepareRead } from '../../src/store/prepared-queries.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'
import { dataResponse, type Response } from '../responses.ts'

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
    // Without a promise if the references are cached; the identity is read once for its roles and its name.
    run: ({ controller, context, params: { id = '', serviceId = '' } }) =>
      whenReady(findIdentity(context.db, id), ([row]) => {
        if (!row) throw notFoundError('identity', id)
        return whenReady(findReference(controller, context, 'services', serviceId), (service) => {
          if (!service) throw notFoundError('service', serviceId)
          return respondWithAdvice(controller, context, row, { serviceId, service })
        })
      }),
  }),
]

const findIdentity = prepareRead((db, id: string) =>
  db.selectFrom('identities').select(['id', 'name', 'authPolicyId', 'roleAttributes']).where('id', '=', id),
)

/** What policies know of the identity, and what references show. */
type IdentityRow = {
  readonly id: string
  readonly name: string
  readonly authPolicyId: string
  readonly roleAttributes: string
}

function respondWithAdvice(
  controller: Controller,
  context: Context,
  row: IdentityRow,
  { serviceId, service }: { readonly serviceId: string; readonly service: RawJson },
): Awaitable<Response> {
  const { index } = controller.access
  const identity = { id: row.id, attributes: JSON.parse(row.roleAttributes) as string[] }
  const { identityCount, serviceCount, commonIds } = index.compareRouters(identity, serviceId)
  return whenReady(listRouterReferences(controller, context, commonIds), (commonRouters) =>
    dataResponse({
      identityId: row.id,
      identity: new RawJson(renderReference(identities, row).text),
      serviceId,
      service,
      isDialAllowed: index.grants(identity, serviceId, 'Dial'),
      isBindAllowed: index.grants(identity, serviceId, 'Bind'),
      identityRouterCount: identityCount,
      serviceRouterCount: serviceCount,
      commonRouters,
    }),
  )
}

function findReference(
  controller: Controller,
  context: Context,
  plural: string,
  id: string,
): Awaitable<RawJson | undefined> {
  return whenReady(controller.records.references.find(context.db, plural, [id]), (references) => {
    const reference = references.get(id)
    return reference && new RawJson(reference.text)
  })
}

/** References to edge routers, as one JSON array, with the state of each. */
function listRouterReferences(controller: Controller, { db }: Context, ids: readonly string[]): Awaitable<RawJson> {
  return whenReady(controller.records.references.find(db, 'edge-routers', ids), (references) => {
    const texts = ids.flatMap((id) => {
      const text = references.get(id)?.text
      const isOnline = controller.routers.network.findRouter(id) !== undefined
      return text ? [`${text.slice(0, -1)},"isOnline":${isOnline}}`] : []
    })
    return new RawJson(`[${texts.join(',')}]`)
  })
}
