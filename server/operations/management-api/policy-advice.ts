// Whether an identity can reach a service, in the record format that existing tools for administrators expect.

import type { Controller } from '../../../src/controller.ts'
import type { Reference } from '../../../src/definitions/model/record-plan.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
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
import { type Awaitable, whenReady } from '../../../src/foundation/awaitable.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import type { RoleBearer } from '../../../src/policy/role-selector.ts'
import type { Context } from '../../../src/storage/context.ts'
import { prepareRead } from '../../../src/storage/prepared-queries.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { renderReference } from '../../../src/storage/records/reference-cache.ts'
import { renderReferenceTo } from '../../../src/storage/records/render-records.ts'
import { JSON_FORMS } from '../../requests/dialects.ts'
import { dataResponse, type Response } from '../../responses/responses.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'

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
    access: { permission: 'identity.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: advice },
    // Without a promise if the references are cached.
    run: ({ controller, context, dialect, params: { id = '', serviceId = '' } }) =>
      whenReady(findIdentity(controller, context, id), (identity) => {
        if (!identity) throw notFoundError('identity', id)
        return whenReady(findReference(controller, context, 'services', serviceId), (service) => {
          if (!service) throw notFoundError('service', serviceId)
          return respondWithAdvice(controller, context, identity, { serviceId, service, form: JSON_FORMS[dialect] })
        })
      }),
  }),
]

/** What policies know of the identity, and how it is shown. */
interface AdvisedIdentity extends RoleBearer {
  readonly reference: RawJson
}

/** Reads the identity from its cached record, or by one statement: to render the record would cost more than the advice. */
function findIdentity({ records }: Controller, { db }: Context, id: string): Awaitable<AdvisedIdentity | undefined> {
  const record = records.cache.get(identities, id)
  if (record) return toAdvisedIdentity(id, record.computedInput.roleAttributes, renderReferenceTo(identities, record))
  return whenReady(
    findIdentityRow(db, id),
    ([row]) => row && toAdvisedIdentity(id, row.roleAttributes, renderReference(identities, row).text),
  )
}

const findIdentityRow = prepareRead((db, id: string) =>
  db.selectFrom('identities').select(['id', 'name', 'authPolicyId', 'roleAttributes']).where('id', '=', id),
)

function toAdvisedIdentity(id: string, roleAttributes: unknown, reference: string): AdvisedIdentity {
  return { id, attributes: JSON.parse(roleAttributes as string) as string[], reference: new RawJson(reference) }
}

function respondWithAdvice(
  controller: Controller,
  context: Context,
  identity: AdvisedIdentity,
  { serviceId, service, form }: { readonly serviceId: string; readonly service: RawJson; readonly form: JsonForm },
): Awaitable<Response> {
  const { index } = controller.access
  const granting = index.filterGrantingService(index.findServicePolicies(identity), serviceId)
  const { identityCount, serviceCount, commonIds } = index.compareRouters(identity, serviceId)
  return whenReady(listRouterReferences(controller, context, commonIds, form), (commonRouters) =>
    dataResponse({
      identityId: identity.id,
      identity: identity.reference,
      serviceId,
      service,
      isDialAllowed: granting.some(({ type }) => type === 'Dial'),
      isBindAllowed: granting.some(({ type }) => type === 'Bind'),
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
function listRouterReferences(
  controller: Controller,
  { db }: Context,
  ids: readonly string[],
  form: JsonForm,
): Awaitable<RawJson> {
  return whenReady(controller.records.references.find(db, 'edge-routers', ids), (references) => {
    const texts: string[] = []
    for (const id of ids) {
      const reference = references.get(id)
      const isOnline = controller.routers.network.findRouter(id) !== undefined
      if (reference) texts.push(renderState(reference, isOnline))
    }
    return new RawJson(texts.length === 0 ? toForm(EMPTY_OR_NULL, form) : `[${texts.join(',')}]`)
  })
}

// By the reference, which is replaced if its record changes: all advice shows the same few routers.
const renderedStates = new WeakMap<Reference, { readonly online: string; readonly offline: string }>()

function renderState(reference: Reference, isOnline: boolean): string {
  let texts = renderedStates.get(reference)
  if (!texts) {
    const head = reference.text.slice(0, -1)
    // Joined, each is one string, which is copied faster than its pieces.
    texts = { online: [head, ',"isOnline":true}'].join(''), offline: [head, ',"isOnline":false}'].join('') }
    renderedStates.set(reference, texts)
  }
  return isOnline ? texts.online : texts.offline
}
