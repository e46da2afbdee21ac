// The commands that close a gap, as words: what is proposed is what this program itself would be told.
import type { Miss } from '../../policy/nearest-miss.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import type { RoleSelector } from '../../policy/role-selector.ts'
import type { NamedRecord, NamedRoleBearer, NearestMiss } from './chain.ts'

export type Command = readonly string[]

/** How the commands call a kind of policy, its records and its sides. */
export interface PolicyNouns {
  readonly policy: string
  readonly subject: { readonly noun: string; readonly flag: string }
  readonly object: { readonly noun: string; readonly flag: string }
}

const identity = { noun: 'identity', flag: '--identity-roles' } as const
const service = { noun: 'service', flag: '--service-roles' } as const
const edgeRouter = { noun: 'edge-router', flag: '--edge-router-roles' } as const

export const servicePolicyNouns: PolicyNouns = { policy: 'service-policy', subject: identity, object: service }
export const edgeRouterPolicyNouns: PolicyNouns = {
  policy: 'edge-router-policy',
  subject: identity,
  object: edgeRouter,
}
export const serviceEdgeRouterPolicyNouns: PolicyNouns = {
  policy: 'service-edge-router-policy',
  subject: service,
  object: edgeRouter,
}

/** How a command names a record: by its name, unless a command line would take that for something else. */
export function toNameArgument({ id, name }: NamedRecord): string {
  return /^-|^(id|name):/.test(name) ? id : name
}

/** What a record is called inside of other names. */
export function toPlainName({ id, name }: NamedRecord): string {
  return /^\w[\w.-]*$/.test(name) ? name : id
}

/** A flag with its value; a value that looks like a flag is tied to it. */
export function flag(name: string, value: string): string[] {
  return value.startsWith('-') ? [`${name}=${value}`] : [name, value]
}

/** The command that gives a record the attributes that it lacks beside those that it has. */
function giveAttributes(noun: string, record: NamedRoleBearer, lacking: readonly string[]): Command {
  const roles = [...record.attributes, ...lacking].flatMap((attribute) => flag('--role', attribute))
  return [noun, 'update', toNameArgument(record), ...roles]
}

/** The command that makes a policy name a record on one of its sides, beside what stands there. */
function nameInPolicy(
  noun: string,
  policy: NamedRecord,
  side: RoleSelector,
  roleFlag: string,
  record: NamedRecord,
): Command {
  const roles = [...listRoles(side), `@${toNameArgument(record)}`]
  return [noun, 'update', toNameArgument(policy), ...roles.flatMap((role) => [roleFlag, role])]
}

/** The command that makes a new policy, of which each side is said. */
export function makePolicy(
  words: PolicyNouns,
  name: string,
  subjects: readonly string[],
  objects: readonly string[],
  more: readonly string[] = [],
): Command {
  return [
    words.policy,
    'create',
    name,
    ...more,
    ...subjects.flatMap((role) => [words.subject.flag, role]),
    ...objects.flatMap((role) => [words.object.flag, role]),
  ]
}

/** The command that closes a miss of one side; undefined where both sides lack something. */
export function closeMiss(
  words: PolicyNouns,
  { policy, subjectLacks, objectLacks }: Miss,
  subject: NamedRoleBearer,
  object: NamedRoleBearer,
): Command | undefined {
  if (objectLacks?.length === 0)
    return closeSide(words.policy, policy, policy.subjects, words.subject, subject, subjectLacks)
  if (subjectLacks?.length === 0)
    return closeSide(words.policy, policy, policy.objects, words.object, object, objectLacks)
  return undefined
}

function closeSide(
  noun: string,
  policy: IndexedPolicy,
  side: RoleSelector,
  words: PolicyNouns['subject'],
  record: NamedRoleBearer,
  lacks: Miss['subjectLacks'],
): Command {
  return lacks ? giveAttributes(words.noun, record, lacks) : nameInPolicy(noun, policy, side, words.flag, record)
}

/** A miss as it is told. */
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

/** A side as it was written. */
function listRoles({ isAll, ids, attributes }: RoleSelector): string[] {
  if (isAll) return ['#all']
  return [...[...attributes].map((attribute) => `#${attribute}`), ...[...ids].map((id) => `@${id}`)]
}
