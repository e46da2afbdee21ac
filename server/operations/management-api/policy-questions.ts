// Questions of administrators about policies: advice, who, what, and impact.

import type { Access } from '../../../src/access/access.ts'
import { advise } from '../../../src/access/advice/advise.ts'
import type { NamedRoleBearer } from '../../../src/access/advice/chain.ts'
import { readRoles, sortByName } from '../../../src/access/advice/service-policy-links.ts'
import { computeImpact } from '../../../src/access/impact/compute-impact.ts'
import { readInput } from '../../../src/definitions/model/input.ts'
import type { AnyResource, AnyRow } from '../../../src/definitions/resources/define.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { getResource } from '../../../src/definitions/resources/index.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { applyPatch, NO_TOLERANCE } from '../../../src/definitions/schema/bodies.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { anyObject } from '../../../src/definitions/schema/json-schema.ts'
import type { PolicyType } from '../../../src/policy/policy-index.ts'
import type { IndexedPolicy } from '../../../src/policy/policy-table.ts'
import type { Evidence } from '../../../src/policy/posture/evaluate-check.ts'
import { findDecidingRoles, mergeSelectors } from '../../../src/policy/role-selector.ts'
import { omitInputs } from '../../../src/storage/entities/declared-fields.ts'
import { get, newEntity } from '../../../src/storage/entities/entities.ts'
import { toRecordChange } from '../../../src/storage/transactions/changes.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { dataResponse } from '../../api/responses.ts'
import { requireRow, respondWithRows } from '../../responses/record-responses.ts'

const OWN = { apis: ['management'], topic: 'policies', isOwn: true } as const
const READ = { permission: 'policy.read', grantedTo: 'administrator' } as const
const TYPE = { schema: { type: 'string', enum: ['Dial', 'Bind'], description: 'Dialing or hosting.' } } as const

const GRANT_COLUMNS = { 'x-columns': ['name', 'permissions', 'allowed', 'policies', 'grantedBy'] } as const

/** The resources whose changes can affect access. */
const DECIDING = [
  'identities',
  'services',
  'edge-routers',
  'posture-checks',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
] as const

interface WhatIf {
  readonly resource: (typeof DECIDING)[number]
  readonly id: string | null
  readonly changes: Readonly<Record<string, unknown>> | null
}

export const policyQuestionOperations: readonly AnyOperation[] = [
  defineOperation({
    ...OWN,
    id: 'adviseOnPolicies',
    method: 'GET',
    path: '/controller/policy/advise/:identityId/:serviceId',
    summary: 'Explains, link by link, why an identity can or cannot reach a service, with remedies.',
    access: READ,
    query: { type: TYPE },
    returns: { kind: 'data', schema: { type: 'object' } },
    async run({ controller, context, params: { identityId = '', serviceId = '' }, query }) {
      return dataResponse(
        await advise(controller, context, identityId, serviceId, (query.type as PolicyType | undefined) ?? 'Dial'),
      )
    },
  }),
  defineOperation({
    ...OWN,
    id: 'listWhoReachesService',
    method: 'GET',
    path: '/controller/policy/who/:serviceId',
    summary: 'Lists the identities that policies let dial or host a service, and what posture allows.',
    access: READ,
    query: { ...listQuery, type: TYPE },
    returns: {
      kind: 'data',
      schema: {
        type: 'array',
        items: { type: 'object', 'x-example-filter': identities.example.filter, ...GRANT_COLUMNS },
      },
    },
    async run(call) {
      const service = findNamedRoleBearer(await requireRow(call.context, services, call.params.serviceId))
      const { access } = call.controller
      const granting = access.index.findServicePoliciesOfService(service.id, call.query.type as PolicyType | undefined)
      const { type: _, ...query } = call.query
      const sides = mergeSelectors(granting.map(({ subjects }) => subjects))
      return respondWithRows({ ...call, query }, identities, [{ sides }], (row) => {
        const identity = findNamedRoleBearer(row)
        return renderGrants(identity, listGrants(access, granting, identity, service))
      })
    },
  }),
  defineOperation({
    ...OWN,
    id: 'listWhatIdentityReaches',
    method: 'GET',
    path: '/controller/policy/what/:identityId',
    summary: 'Lists the services that policies let an identity dial or host, and what posture allows.',
    access: READ,
    query: { ...listQuery, type: TYPE },
    returns: {
      kind: 'data',
      schema: {
        type: 'array',
        items: { type: 'object', 'x-example-filter': services.example.filter, ...GRANT_COLUMNS },
      },
    },
    async run(call) {
      const { controller, context, params } = call
      const { access } = controller
      const identity = findNamedRoleBearer(await requireRow(context, identities, params.identityId))
      const policies = access.findPolicies(identity, call.query.type as PolicyType | undefined)
      const { type: _, ...query } = call.query
      const ids = access.index.listGrantedServices(policies)
      return respondWithRows({ ...call, query }, services, [{ ids }], (row) => {
        const service = findNamedRoleBearer(row)
        const granting = access.filterGranting(policies, service.id)
        return renderGrants(service, listGrants(access, granting, identity, service))
      })
    },
  }),
  defineOperation<WhatIf>({
    ...OWN,
    id: 'judgePolicyImpact',
    method: 'POST',
    path: '/controller/policy/impact',
    summary: 'Shows which access a deletion, a change or a new record would remove and add, without making it.',
    access: READ,
    body: readFieldsBody<WhatIf>({
      resource: f.choice(DECIDING, { required: true, summary: 'The resource of the record, as in paths.' }),
      id: f.text({ nullable: true, acceptsNull: true, summary: 'The record; without it, a new one.' }),
      changes: f.json(anyObject, {
        nullable: true,
        acceptsNull: true,
        summary: 'The members to change, or those of the new record; without any, it is deleted.',
      }),
    }),
    returns: { kind: 'data', schema: { type: 'object' } },
    errorStatuses: [404],
    async run({ controller, context, body: { resource: plural, id, changes } }) {
      const resource = getResource(plural)
      if (!id) {
        const values = readInput(resource, 'create', changes ?? {}, NO_TOLERANCE)
        const after = newEntity(context, resource, omitInputs(resource, values) as never) as { id: string }
        return dataResponse(
          await computeImpact(controller, context, [toRecordChange(plural, after.id, undefined, after)]),
        )
      }
      const before = (await get(context, resource, id)) as Record<string, unknown> & { id: string }
      if (!changes || Object.keys(changes).length === 0)
        return dataResponse(await computeImpact(controller, context, [toRecordChange(plural, id, before, undefined)]))
      const values = readInput(resource, 'patch', changes, NO_TOLERANCE, before.typeId as string | undefined)
      const after = mergeChanges(resource, before, values)
      return dataResponse(await computeImpact(controller, context, [toRecordChange(plural, id, before, after)]))
    },
  }),
]

/** The record after the changes, as a patch would store it. */
function mergeChanges(
  resource: AnyResource,
  before: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const variant = resource.variants?.[before.typeId as string]
  if (!variant || !values.details) return { ...before, ...values }
  const [old, changed] = [before.details, values.details] as Record<string, unknown>[]
  return { ...before, ...values, details: applyPatch(variant, old ?? {}, changed ?? {}) }
}

export function findNamedRoleBearer({ id, name, roleAttributes }: AnyRow): NamedRoleBearer {
  return { id, name: name as string, attributes: JSON.parse(roleAttributes as string) as string[] }
}

/** A policy that links an identity with a service, and whether its posture checks pass. */
interface Grant {
  readonly policy: IndexedPolicy
  readonly evidence: Evidence
  /** The posture checks that do not pass, or of which nothing is known. */
  readonly unmetCheckIds: readonly string[]
  /** The entries of the role selectors that match, such as `#staff → #web`. */
  readonly roles: string
}

/** The policies that match both, in the order of their names. */
function listGrants(
  access: Access,
  policies: readonly IndexedPolicy[],
  identity: NamedRoleBearer,
  service: NamedRoleBearer,
): Grant[] {
  const evaluation = access.evaluatePosture({ identity })
  return sortByName(policies).flatMap((policy) => {
    const subjectRoles = readRoles(findDecidingRoles(policy.subjects, identity), identity)
    if (subjectRoles.length === 0) return []
    const objectRoles = readRoles(findDecidingRoles(policy.objects, service), service)
    const { evidence, findings } = evaluation.evaluatePolicy(policy)
    const unmetCheckIds = findings.filter((finding) => finding.evidence !== 'passing').map(({ check }) => check.id)
    return [{ policy, evidence, unmetCheckIds, roles: `${subjectRoles.join(' ')} → ${objectRoles.join(' ')}` }]
  })
}

/** `permissions` are granted by policies; `allowed` are those of them that open a session now. */
function renderGrants({ id, name }: NamedRoleBearer, grants: readonly Grant[]) {
  const listTypes = (some: readonly Grant[]) => {
    const types = new Set(some.map(({ policy }) => policy.type))
    return ['Bind', 'Dial'].filter((type) => types.has(type))
  }
  return {
    id,
    name,
    permissions: listTypes(grants),
    allowed: listTypes(grants.filter(({ evidence }) => evidence === 'passing')),
    policies: grants.map(({ policy }) => ({ id: policy.id, name: policy.name })),
    grantedBy: grants.map(({ roles }) => roles),
    grants: grants.map(({ policy: { id: policyId, type }, roles, evidence, unmetCheckIds }) => ({
      policyId,
      type,
      roles,
      evidence,
      unmetCheckIds,
    })),
  }
}
