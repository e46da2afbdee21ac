// Sums up the changes of a commit, record by record: as each was before the first of them, and is after the last.
import type { Change, RecordOf } from '../../storage/transactions/changes.ts'

/** Resources that the data model of routers is made of. */
const RESOURCES = [
  'config-types',
  'configs',
  'services',
  'identities',
  'service-configs',
  'posture-checks',
  'service-policies',
  'revocations',
] as const

type ModelResource = (typeof RESOURCES)[number]

/** A record that did not exist before, or does not exist after, is undefined there. */
export interface NetChange<Record> {
  readonly before: Record | undefined
  readonly after: Record | undefined
}

type StateOf<Name extends ModelResource> = Name extends 'revocations'
  ? Extract<Change, { resource: 'revocations' }>['after']
  : RecordOf<Exclude<Name, 'revocations'>>

export type NetChanges = {
  readonly [Name in ModelResource]: ReadonlyMap<string, NetChange<NonNullable<StateOf<Name>>>>
}

const RESOURCE_SET: ReadonlySet<string> = new Set(RESOURCES)

export function isOfModel({ resource }: Pick<Change, 'resource'>): boolean {
  return RESOURCE_SET.has(resource)
}

/** The net changes of the model's resources. */
export function toNetChanges(changes: readonly Change[]): NetChanges {
  const net = Object.fromEntries(RESOURCES.map((name) => [name, new Map()])) as Record<
    ModelResource,
    Map<string, NetChange<unknown>>
  >
  for (const change of changes) {
    if (!isOfModel(change)) continue
    const { id, before, after } = change
    const records = net[change.resource as ModelResource]
    const earlier = records.get(id)
    records.set(id, { before: earlier ? earlier.before : before, after })
  }
  return net as unknown as NetChanges
}
