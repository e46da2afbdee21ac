// Finds the records that policies match since the changes of a commit, and those that they do not match any more.
//
// Services and posture checks are in the policy index, before and after the changes. Identities are in the database alone, as it is
// after the changes; what they were before is known of those that changed.
import type { AliasedSelectQueryBuilder, Kysely } from 'kysely'
import type { Access } from '../../access/access.ts'
import type { PolicyReader } from '../../policy/policy-index.ts'
import { matchesSelector, parseRoleSelector, type RoleSelector } from '../../policy/role-selector.ts'
import type { Database } from '../../storage/database.ts'
import type { Change, RecordOf } from '../../storage/transactions/changes.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { MEMBER_KINDS, type MemberKind, type MembershipEvent } from './model-events.ts'
import type { NetChange, NetChanges } from './net-changes.ts'

/** More members are not told one by one: routers receive everything in place of them. */
export const MAX_MEMBERS = 8_192

/** A commit changes too many memberships to tell them one by one. */
export class TooManyMembersError extends Error {
  override readonly name = 'TooManyMembersError'
}

type Policy = RecordOf<'service-policies'>
type Identity = RecordOf<'identities'>

export interface MembershipParts {
  /** Its index does not know the changes yet. */
  readonly access: Pick<Access, 'findOverrides' | 'index' | 'withHypothetical'>
  /** The database as it is after the changes. */
  readonly db: Kysely<Database>
}

/** @throws TooManyMembersError */
export async function findMembershipChanges(
  { access, db }: MembershipParts,
  changes: readonly Change[],
  net: NetChanges,
): Promise<MembershipEvent[]> {
  const touched = {
    policies: new Map([...net['service-policies']].filter(([, change]) => hasOtherRoles(change))),
    services: [...net.services].filter(([, change]) => hasOtherAttributes(change)).map(([id]) => id),
    checks: [...net['posture-checks']].filter(([, change]) => hasOtherAttributes(change)).map(([id]) => id),
    identities: new Map([...net.identities].filter(([, change]) => hasOtherAttributes(change))),
  }
  const { policies, services, checks, identities } = touched
  if (policies.size + services.length + checks.length + identities.size === 0) return []
  const read = (side: 'before' | 'after') => (index: PolicyReader) => readMembers(index, touched, side)
  const before = read('before')(access.index)
  // Identities are not in the index: most changes are theirs, and leave it as it is.
  const isOfIndex = policies.size + services.length + checks.length > 0
  const after = isOfIndex ? access.withHypothetical(changes, read('after')) : read('after')(access.index)
  for (const [id, change] of policies) {
    if (change.after) await addSubjects(db, { id, change, before, after, known: identities })
  }
  return compare(before, after, (policyId) => policies.get(policyId)?.after === undefined && policies.has(policyId))
}

interface Touched {
  readonly policies: ReadonlyMap<string, NetChange<Policy>>
  readonly services: readonly string[]
  readonly checks: readonly string[]
  readonly identities: ReadonlyMap<string, NetChange<Identity>>
}

/** Members of policies, of those that the changes concern. */
class Members {
  readonly #byPolicy = new Map<string, Record<MemberKind, Set<string>>>()
  #count = 0

  add(policyId: string, kind: MemberKind, ids: Iterable<string>): void {
    let members = this.#byPolicy.get(policyId)
    if (!members) {
      members = { services: new Set(), 'posture-checks': new Set(), identities: new Set() }
      this.#byPolicy.set(policyId, members)
    }
    for (const id of ids) {
      members[kind].add(id)
      this.#count += 1
    }
    if (this.#count > MAX_MEMBERS) throw new TooManyMembersError()
  }

  get policyIds(): Iterable<string> {
    return this.#byPolicy.keys()
  }

  get(policyId: string, kind: MemberKind): ReadonlySet<string> {
    return this.#byPolicy.get(policyId)?.[kind] ?? NONE
  }
}

const NONE: ReadonlySet<string> = new Set()

function readMembers(index: PolicyReader, touched: Touched, side: 'before' | 'after'): Members {
  const members = new Members()
  for (const id of touched.policies.keys()) {
    const policy = index.findServicePolicy(id)
    if (!policy) continue
    members.add(id, 'services', index.listGrantedServices([policy]))
    members.add(
      id,
      'posture-checks',
      index.listRequiredPostureChecks(policy).map((check) => check.id),
    )
  }
  for (const id of touched.services)
    for (const policy of index.findServicePoliciesOfService(id)) members.add(policy.id, 'services', [id])
  for (const id of touched.checks)
    for (const policy of index.findServicePoliciesOfPostureCheck(id)) members.add(policy.id, 'posture-checks', [id])
  for (const [id, change] of touched.identities) {
    const attributes = change[side]?.roleAttributes
    if (!attributes) continue
    for (const policy of index.findServicePolicies({ id, attributes })) members.add(policy.id, 'identities', [id])
  }
  return members
}

interface ChangedPolicy {
  readonly id: string
  readonly change: NetChange<Policy>
  readonly before: Members
  readonly after: Members
  /** Identities of which both sides are known already. */
  readonly known: ReadonlyMap<string, unknown>
}

/** Adds the identities that only one side of a changed policy matches. */
async function addSubjects(db: Kysely<Database>, { id, change, before, after, known }: ChangedPolicy): Promise<void> {
  const [former, latter] = [toSubjects(change.before), toSubjects(change.after)]
  const candidates = await listCandidates(db, former, latter)
  for (const row of candidates) {
    if (known.has(row.id)) continue
    const bearer = { id: row.id, attributes: JSON.parse(row.roleAttributes) as string[] }
    const [was, is] = [matchesSelector(former, bearer), matchesSelector(latter, bearer)]
    if (was && !is) before.add(id, 'identities', [row.id])
    if (is && !was) after.add(id, 'identities', [row.id])
  }
}

function toSubjects(policy: Policy | undefined): RoleSelector {
  return parseRoleSelector(policy?.semantic ?? 'AnyOf', policy?.identityRoles ?? [])
}

/** The identities that may be matched by one of two selectors and not by the other. */
async function listCandidates(db: Kysely<Database>, former: RoleSelector, latter: RoleSelector) {
  if (former.isAll && latter.isAll) return []
  const columns = ['id', 'roleAttributes'] as const
  if (former.isAll || latter.isAll) {
    const query = db.selectFrom('identities').select(columns)
    await requireFew(
      db,
      db
        .selectFrom('identities')
        .select('n')
        .limit(MAX_MEMBERS + 1)
        .as('found'),
    )
    return query.execute()
  }
  const ids = listOnlyInOne(former.ids, latter.ids)
  const attributes = listDecidingAttributes(former, latter)
  const holders = db
    .selectFrom('identities_role_attributes')
    .select('n')
    .where(isOneOf(db, 'value', attributes))
  const named =
    ids.length === 0
      ? []
      : db
          .selectFrom('identities')
          .select(columns)
          .where(isOneOf(db, 'id', ids))
          .execute()
  if (attributes.length === 0) return named
  await requireFew(db, holders.limit(MAX_MEMBERS + 1).as('found'))
  const bearers = await db.selectFrom('identities').select(columns).where('n', 'in', holders).execute()
  return [...(await named), ...bearers]
}

/** Attributes of which an identity has one if its attributes match one selector only. */
function listDecidingAttributes(former: RoleSelector, latter: RoleSelector): string[] {
  const isAnyOf = ({ semantic, attributes }: RoleSelector) => semantic === 'AnyOf' || attributes.size < 2
  if (isAnyOf(former) && isAnyOf(latter)) return listOnlyInOne(former.attributes, latter.attributes)
  // An identity that has all of them has the first.
  return [former, latter].flatMap((selector) => [...selector.attributes].slice(0, isAnyOf(selector) ? undefined : 1))
}

function listOnlyInOne(some: ReadonlySet<string>, others: ReadonlySet<string>): string[] {
  return [...some].filter((one) => !others.has(one)).concat([...others].filter((one) => !some.has(one)))
}

/** @throws TooManyMembersError, at a cost that does not depend on how many there are */
async function requireFew(
  db: Kysely<Database>,
  found: AliasedSelectQueryBuilder<{ n: number }, 'found'>,
): Promise<void> {
  const { n } = await db
    .selectFrom(found)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  if (n > MAX_MEMBERS) throw new TooManyMembersError()
}

/** An identity that a selector names and matches by its attributes is in both lists. */
function compare(before: Members, after: Members, isDeleted: (policyId: string) => boolean): MembershipEvent[] {
  const events: MembershipEvent[] = []
  for (const policyId of new Set([...before.policyIds, ...after.policyIds])) {
    for (const members of MEMBER_KINDS) {
      // A router takes all identities of a policy that is deleted out of it by itself.
      if (members === 'identities' && isDeleted(policyId)) continue
      const [was, is] = [before.get(policyId, members), after.get(policyId, members)]
      const removed = [...was].filter((id) => !is.has(id))
      const added = [...is].filter((id) => !was.has(id))
      if (removed.length > 0) events.push({ action: 'remove', policyId, members, ids: removed })
      if (added.length > 0) events.push({ action: 'add', policyId, members, ids: added })
    }
  }
  return events
}

type WithAttributes = { readonly roleAttributes: readonly string[] }

function hasOtherAttributes({ before, after }: NetChange<WithAttributes>): boolean {
  return !isSameList(before?.roleAttributes, after?.roleAttributes)
}

const SIDES = ['identityRoles', 'serviceRoles', 'postureCheckRoles'] as const

function hasOtherRoles({ before, after }: NetChange<Policy>): boolean {
  return before?.semantic !== after?.semantic || SIDES.some((side) => !isSameList(before?.[side], after?.[side]))
}

function isSameList(some: readonly string[] | undefined, others: readonly string[] | undefined): boolean {
  if (some === others) return true
  return some !== undefined && others?.length === some.length && some.every((entry, at) => entry === others[at])
}
