// Finds what a commit changes of the data model of routers, in the order in which they have to apply it.
//
// A router drops what it is told about records that it does not have yet, and fails on a policy that requires a posture check which it
// does not have. Members therefore leave policies first, and join them when everything else is there; records are deleted last.
import { isDeepStrictEqual } from 'node:util'
import type { Kysely } from 'kysely'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import { isElementOf, isOneOf } from '../../storage/untyped.ts'
import { findMembershipChanges, type MembershipParts } from './memberships.ts'
import {
  IDENTITY_COLUMNS,
  type IdentityRecord,
  identityFromRow,
  type ModelOverride,
  toModelConfig,
  toModelConfigType,
  toModelIdentity,
  toModelPolicy,
  toModelPostureCheck,
  toModelService,
} from './model-entities.ts'
import type { ModelEntity, ModelEvent, ModelKind } from './model-events.ts'
import { type NetChange, type NetChanges, toNetChanges } from './net-changes.ts'

/** A commit with more changes than this is not told change by change. */
const MAX_CHANGES = 8_192

/** A commit changes too much to tell it change by change. */
export class TooManyChangesError extends Error {
  override readonly name = 'TooManyChangesError'
}

/**
 * The events of a commit; none if it changes nothing of what routers know.
 * @throws TooManyChangesError, TooManyMembersError if routers have to receive everything instead
 */
export async function toModelEvents(parts: MembershipParts, changes: readonly Change[]): Promise<ModelEvent[]> {
  if (changes.length > MAX_CHANGES) throw new TooManyChangesError()
  const net = toNetChanges(changes)
  const memberships = await findMembershipChanges(parts, changes, net)
  const identities = await listIdentityEvents(parts, net)
  const configTypes = listEvents(net['config-types'], 'config-type', toModelConfigType)
  const configs = listEvents(net.configs, 'config', toModelConfig)
  const services = listEvents(net.services, 'service', toModelService)
  const checks = listEvents(net['posture-checks'], 'posture-check', toModelPostureCheck)
  const policies = listEvents(net['service-policies'], 'policy', toModelPolicy)
  const revocations = listRevocationEvents(net.revocations)
  const entities = [configTypes, configs, services, identities, checks, policies, revocations].flat()
  const isDeletion = ({ action }: ModelEvent) => action === 'delete'
  return [
    ...memberships.filter(({ action }) => action === 'remove'),
    ...entities.filter((event) => !isDeletion(event)),
    ...memberships.filter(({ action }) => action === 'add'),
    // Records that others refer to go after these.
    ...entities.filter(isDeletion).reverse(),
  ]
}

function listEvents<Record>(
  records: ReadonlyMap<string, NetChange<Record>>,
  kind: ModelKind,
  toEntity: (record: Record) => ModelEntity,
): ModelEvent[] {
  return [...records].flatMap(([id, { before, after }]): ModelEvent[] => {
    if (!after) return before ? [{ action: 'delete', kind, id }] : []
    const entity = toEntity(after)
    if (!before) return [{ action: 'create', entity }]
    return isDeepStrictEqual(toEntity(before), entity) ? [] : [{ action: 'update', entity }]
  })
}

function listRevocationEvents(revocations: NetChanges['revocations']): ModelEvent[] {
  return [...revocations].map(([id, { after }]): ModelEvent => {
    return after
      ? { action: 'create', entity: { kind: 'revocation', id, ...after } }
      : { action: 'delete', kind: 'revocation', id }
  })
}

/** Identities, with the configs that they get in place of those of services, which are records of their own. */
async function listIdentityEvents({ access, db }: MembershipParts, net: NetChanges): Promise<ModelEvent[]> {
  const events = listEvents(net.identities, 'identity', (record) => toModelIdentity(record, []))
  const ids = new Set<string>()
  for (const event of events) if ('entity' in event) ids.add(event.entity.id)
  for (const { before, after } of net['service-configs'].values()) {
    const override = after ?? before
    if (override && isThere(net.identities.get(override.identityId))) ids.add(override.identityId)
  }
  if (ids.size === 0) return events
  // Most networks have none.
  const mayOverride = net['service-configs'].size > 0 || [...ids].some((id) => access.findOverrides(id).length > 0)
  const overrides = mayOverride ? await readOverrides(db, [...ids]) : new Map<string, ModelOverride[]>()
  const records = await listIdentities(db, net, [...ids])
  return [
    ...events.filter(({ action }) => action === 'delete'),
    ...records.map((record): ModelEvent => {
      const isNew = net.identities.has(record.id) && !net.identities.get(record.id)?.before
      return { action: isNew ? 'create' : 'update', entity: toModelIdentity(record, overrides.get(record.id) ?? []) }
    }),
  ]
}

function isThere(change: NetChange<unknown> | undefined): boolean {
  return change === undefined || change.after !== undefined
}

async function listIdentities(
  db: Kysely<Database>,
  net: NetChanges,
  ids: readonly string[],
): Promise<readonly IdentityRecord[]> {
  const changed = ids.flatMap((id) => net.identities.get(id)?.after ?? [])
  const otherIds = ids.filter((id) => !net.identities.has(id))
  if (otherIds.length === 0) return changed
  const rows = await db
    .selectFrom('identities')
    .select(IDENTITY_COLUMNS)
    .where(isOneOf(db, 'id', otherIds))
    .execute()
  return [...changed, ...rows.map(identityFromRow)]
}

const selectOverrides = prepareQuery((db, identityIds: string) =>
  db
    .selectFrom('service_configs')
    .select(['identityId', 'serviceId', 'configTypeId', 'configId'])
    .where(isElementOf(db, 'identityId', identityIds)),
)

async function readOverrides(
  db: Kysely<Database>,
  identityIds: readonly string[],
): Promise<Map<string, ModelOverride[]>> {
  const byIdentity = new Map<string, ModelOverride[]>()
  for (const { identityId, ...override } of await selectOverrides(db, JSON.stringify(identityIds)))
    byIdentity.set(identityId, [...(byIdentity.get(identityId) ?? []), override])
  return byIdentity
}
