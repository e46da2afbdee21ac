// Whether a holder of rights may read a record, or what the audit and the events tell of it.
import { resources } from '../resources/index.ts'
import { isInExtent, type Rights, type ScopedRecord } from './rights.ts'

/** A record whose reading is judged. */
export interface ReadableRecord {
  /** The plural of its resource, or the name that the audit and the events have for what no resource describes. */
  readonly resource: string
  /** Its role attributes and tags as far as they are known, as they are and were. */
  readonly states: readonly ScopedRecord[]
}

const names: ReadonlyMap<string, string> = new Map([
  ...[['circuits', 'circuit'] as const, ['links', 'link'] as const, ['revocations', 'revocation'] as const],
  ...resources.map(({ plural, name }) => [plural, name] as const),
])

/** The right to read records of a resource; events that concern no kind of record, such as backups, need that of the audit. */
function toReadRight(resource: string): string {
  return `${names.get(resource) ?? 'audit'}.read`
}

/** Whether a record may be read. If the right is on some records only, each known state must be among them. */
export function mayReadRecord(rights: Rights, { resource, states }: ReadableRecord): boolean {
  const extent = rights.findExtent(toReadRight(resource))
  if (extent === undefined || extent === 'all') return extent === 'all'
  return states.length > 0 && states.every((state) => isInExtent(state, extent))
}

/** Whether the record itself decides whether it may be read, so that its role attributes and tags have to be known. */
export function isReadByRecord(rights: Rights, resource: string): boolean {
  const extent = rights.findExtent(toReadRight(resource))
  return extent !== undefined && extent !== 'all'
}

/** The resources, in the plural, all of whose records may be read; undefined if those of every one may. */
export function listReadResources(rights: Rights): readonly string[] | undefined {
  if (rights.readsEverything) return undefined
  return [...names.keys()].filter((plural) => rights.has(toReadRight(plural)))
}
