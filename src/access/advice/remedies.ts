// The changes that close a gap, as data: the operation, the record, and the members that its request sends.
import type { Miss } from '../../policy/nearest-miss.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import type { NamedRecord, NamedRoleBearer, NearestMiss, Remedy } from './chain.ts'

/** One side of a kind of policy: the resource that it selects, and the member that holds its roles. */
interface PolicySide {
  readonly resource: string
  readonly field: string
}

/** A kind of policy. */
export interface PolicyKind {
  readonly resource: string
  readonly subject: PolicySide
  readonly object: PolicySide
}

const identitySide = { resource: 'identities', field: 'identityRoles' } as const
const serviceSide = { resource: 'services', field: 'serviceRoles' } as const
const edgeRouterSide = { resource: 'edge-routers', field: 'edgeRouterRoles' } as const

export const servicePolicyKind: PolicyKind = {
  resource: 'service-policies',
  subject: identitySide,
  object: serviceSide,
}
export const edgeRouterPolicyKind: PolicyKind = {
  resource: 'edge-router-policies',
  subject: identitySide,
  object: edgeRouterSide,
}
export const serviceEdgeRouterPolicyKind: PolicyKind = {
  resource: 'service-edge-router-policies',
  subject: serviceSide,
  object: edgeRouterSide,
}

/** The name of a record inside other names. */
export function toPlainName({ id, name }: NamedRecord): string {
  return /^\w[\w.-]*$/.test(name) ? name : id
}

const toNamedRecord = ({ id, name }: NamedRecord): NamedRecord => ({ id, name })

/** Gives a record the attributes that it lacks besides those that it has. */
function addAttributes({ resource }: PolicySide, record: NamedRoleBearer, lacking: readonly string[]): Remedy {
  return { operation: 'update', resource, record: toNamedRecord(record), adds: { roleAttributes: lacking } }
}

/** Makes a policy name a record on one of its sides, besides what the side selects already. */
function nameInPolicy(resource: string, policy: NamedRecord, { field }: PolicySide, record: NamedRecord): Remedy {
  return {
    operation: 'update',
    resource,
    record: toNamedRecord(policy),
    adds: { [field]: [`@${record.id}`] },
    references: [toNamedRecord(record)],
  }
}

/**
 * Makes a new policy.
 * @param subjects the records that it names
 * @param objects the records that it names; without any, all
 */
export function createPolicy(
  { resource, subject, object }: PolicyKind,
  name: string,
  subjects: readonly NamedRecord[],
  objects: readonly NamedRecord[],
  more: Readonly<Record<string, unknown>> = {},
): Remedy {
  const toRoles = (records: readonly NamedRecord[]) => records.map(({ id }) => `@${id}`)
  return {
    operation: 'create',
    resource,
    values: {
      name,
      ...more,
      semantic: 'AnyOf',
      [subject.field]: toRoles(subjects),
      [object.field]: objects.length === 0 ? ['#all'] : toRoles(objects),
    },
    references: [...subjects, ...objects].map(toNamedRecord),
  }
}

/** Closes a miss on the side of the subject; undefined if the other side lacks something. */
export function closeSubjectMiss(
  { resource, subject: side }: PolicyKind,
  { policy, subjectLacks, objectLacks }: Miss,
  subject: NamedRoleBearer,
): Remedy | undefined {
  return objectLacks?.length === 0 ? closeSide(resource, policy, side, subject, subjectLacks) : undefined
}

/** Closes a miss on the side of the object, for every subject of the policy; undefined if the subject lacks something. */
export function closeObjectMiss(
  { resource, object: side }: PolicyKind,
  { policy, subjectLacks, objectLacks }: Miss,
  object: NamedRoleBearer,
): Remedy | undefined {
  return subjectLacks?.length === 0 ? closeSide(resource, policy, side, object, objectLacks) : undefined
}

function closeSide(
  resource: string,
  policy: IndexedPolicy,
  side: PolicySide,
  record: NamedRoleBearer,
  lacks: Miss['subjectLacks'],
): Remedy {
  return lacks ? addAttributes(side, record, lacks) : nameInPolicy(resource, policy, side, record)
}

/** A miss as advice describes it. */
export function describeMiss(
  { policy, subjectLacks, objectLacks }: Miss,
  subject: NamedRecord,
  object: NamedRecord,
): NearestMiss {
  const lacking = [
    { record: subject.name, attributes: subjectLacks ?? null },
    { record: object.name, attributes: objectLacks ?? null },
  ]
  return {
    policy: { id: policy.id, name: policy.name },
    lacking: lacking.filter(({ attributes }) => attributes === null || attributes.length > 0),
  }
}
