// Ends the sessions that a change takes the right to, inside the transaction that makes it.
import type { WriteContext } from '../context.ts'
import type { PolicyType, ServicePolicyRecord } from '../policy/policy-index.ts'
import { type Attributed, matches, parseSide, type Side } from '../policy/side.ts'
import { sessions } from '../resources/sessions.ts'
import type { Change } from '../store/changes.ts'
import { type Kept, kept } from '../store/kept.ts'
import { isOneOf } from '../store/untyped.ts'
import type { Altered } from './index-feed.ts'

/** A session with what decides whether it may live. */
interface Concerned {
  readonly id: string
  readonly serviceId: string
  readonly type: PolicyType
  readonly identity: Attributed
}

type Reading = Pick<WriteContext, 'db' | 'controller'>

/**
 * Ends every session whose right the changes of this transaction took away; whoever holds it, administrators included.
 * @param earlier what transactions changed that commit together with this one, and that memory has not heard of
 */
export async function endLostSessions(
  tx: WriteContext,
  earlier: readonly Change[],
  own: readonly Change[],
): Promise<void> {
  const lost = await lostSessions(tx, earlier, own)
  if (lost.length === 0) return
  // All by one statement, because a policy may have been the right of thousands, and nothing belongs to a session.
  const ids = lost.map(({ id }) => id)
  await tx.db
    .deleteFrom('sessions')
    .where(isOneOf(tx.db, 'id', ids))
    .execute()
  const at = tx.clock.now()
  for (const { id, serviceId, type, identity } of lost) {
    const before = { id, serviceId, type, identityId: identity.id }
    tx.record({ operation: 'delete', audit: 'none', resource: sessions.plural, id, at, before })
  }
}

/** The sessions that changes take the right to. Only those are looked at that one of the changes can concern. */
export async function lostSessions(
  context: Reading,
  earlier: readonly Altered[],
  own: readonly Altered[],
): Promise<Concerned[]> {
  const concerned = new Map<string, Concerned>()
  for (const change of own) {
    for (const session of await concernedBy(context, earlier, change)) concerned.set(session.id, session)
  }
  if (concerned.size === 0) return []
  return context.controller.access.asIf([...earlier, ...own], (index) =>
    [...concerned.values()].filter(({ identity, serviceId, type }) => !index.mayReach(identity, serviceId, type)),
  )
}

const sessionsOf: Kept<[string], { id: string }> = kept((db, identityId) =>
  db.selectFrom('sessions').select('id').where('identityId', '=', identityId),
) as never

/** The sessions that a change may take the right of. */
async function concernedBy(tx: Reading, earlier: readonly Altered[], change: Altered): Promise<Concerned[]> {
  const { resource, id, before, after } = change
  switch (resource) {
    case 'identities':
      if (!after || !losesEntries(before, after, 'roleAttributes')) return []
      // Most identities hold no session, and are changed often: this is a look into one index.
      return (await sessionsOf(tx.db, id)).length > 0 ? found(tx, { identityIds: [id] }) : []
    case 'services':
      return after && losesEntries(before, after, 'roleAttributes') ? found(tx, { serviceIds: [id] }) : []
    case 'service-policies':
      return before && !onlyGrows(before, after) ? ofPolicy(tx, earlier, before as unknown as ServicePolicyRecord) : []
    // The right may have gone since it was asked for.
    case 'sessions':
      return after ? found(tx, { ids: [id] }) : []
    default:
      return []
  }
}

type Values = Readonly<Record<string, unknown>>

function losesEntries(before: Values | undefined, after: Values, field: string): boolean {
  const had = (before?.[field] ?? []) as readonly string[]
  const has = after[field] as readonly string[]
  return had !== has && had.some((entry) => !has.includes(entry))
}

/** Whether a policy grants at least what it granted before. */
function onlyGrows(before: Values, after: Values | undefined): boolean {
  if (!after || before.type !== after.type) return false
  const sides = ['identityRoles', 'serviceRoles']
  if (after.semantic === 'AnyOf') return sides.every((side) => !losesEntries(before, after, side))
  const isSame = (side: string) => String(before[side]) === String(after[side])
  return before.semantic === 'AllOf' && sides.every(isSame)
}

/** The sessions that a policy, as it was, may have granted: found from the side that says most about them. */
async function ofPolicy(tx: Reading, earlier: readonly Altered[], policy: ServicePolicyRecord) {
  const { semantic, type } = policy
  const identities = parseSide(semantic, policy.identityRoles)
  const services = parseSide(semantic, policy.serviceRoles)
  const areFewIdentities = !identities.isAll && identities.attributes.size === 0
  const candidates = areFewIdentities
    ? await found(tx, { type, identityIds: [...identities.ids] })
    : !services.isAll
      ? await found(tx, { type, serviceIds: servicesOf(tx, earlier, services) })
      : await found(tx, { type, identities })
  return candidates.filter(({ identity }) => matches(identities, identity))
}

function servicesOf({ controller }: Reading, earlier: readonly Altered[], side: Side): string[] {
  return controller.access.asIf(earlier, (index) => index.servicesMatching(side))
}

interface Wanted {
  readonly ids?: readonly string[]
  readonly identityIds?: readonly string[]
  readonly serviceIds?: readonly string[]
  /** Sessions of identities that have one of the side's attributes, or are named by it. */
  readonly identities?: Side
  readonly type?: PolicyType
}

async function found({ db }: Reading, wanted: Wanted): Promise<Concerned[]> {
  let query = db
    .selectFrom('sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.id', 'session.serviceId', 'session.type', 'session.identityId', 'identity.roleAttributes'])
  const { ids, identityIds, serviceIds, identities, type } = wanted
  if (type) query = query.where('session.type', '=', type)
  if (ids) query = query.where(isOneOf(db, 'session.id', ids))
  if (identityIds) query = query.where(isOneOf(db, 'session.identityId', identityIds))
  if (serviceIds) query = query.where(isOneOf(db, 'session.serviceId', serviceIds))
  if (identities && !identities.isAll) {
    query = query.where((eb) =>
      eb.or([
        isOneOf(db, 'session.identityId', [...identities.ids]),
        eb(
          'identity.n',
          'in',
          eb
            .selectFrom('identities_role_attributes')
            .select('n')
            .where(isOneOf(db, 'value', [...identities.attributes])),
        ),
      ]),
    )
  }
  const rows = await query.execute()
  return rows.map(({ id, serviceId, type, identityId, roleAttributes }) => ({
    id,
    serviceId,
    type,
    identity: { id: identityId, attributes: JSON.parse(roleAttributes) as string[] },
  }))
}
