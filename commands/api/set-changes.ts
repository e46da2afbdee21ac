// Changes single entries of sets and of tags, and reports which entries a replacement removed.
import { Flags, type Interfaces } from '@oclif/core'
import type { OperationDescription } from '../../src/client/api-description.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { assertSingleRoles, type FlagValues, parseKeyValue } from './body.ts'
import { type BodyFlag, getAt } from './body-flags.ts'

/** The members that hold several entries: sets, and pairs of keys and values. */
function listSets(members: readonly BodyFlag[]): BodyFlag[] {
  return members.filter(({ form }) => form === 'set' || form === 'pairs')
}

/** The sets of which an operation can change single entries: those of a change that leaves other members as they are. */
function listChangeableSets({ method }: OperationDescription, members: readonly BodyFlag[]): BodyFlag[] {
  return method === 'PATCH' ? listSets(members) : []
}

/** The flags `--add-X` and `--remove-X` besides each `--X` that replaces a whole set. */
export function makeSetFlags(operation: OperationDescription, members: readonly BodyFlag[]): Interfaces.FlagInput {
  const makeFlag = (description: string, flag: string, helpValue?: string) =>
    Flags.string({
      description,
      exclusive: [flag],
      multiple: true,
      multipleNonGreedy: true,
      ...(helpValue ? { helpValue } : {}),
    }) as Interfaces.Flag<unknown>
  return Object.fromEntries(
    listChangeableSets(operation, members).flatMap(({ flag, form }) => {
      const isPairs = form === 'pairs'
      const set = `what --${flag} replaces. Can be repeated.`
      return [
        [`add-${flag}`, makeFlag(`Add an entry to ${set}`, flag, isPairs ? 'KEY=VALUE' : undefined)],
        [`remove-${flag}`, makeFlag(`Remove an entry from ${set}`, flag, isPairs ? 'KEY' : undefined)],
      ]
    }),
  )
}

/** Whether the flags change single entries. */
export function hasSetChanges(
  operation: OperationDescription,
  members: readonly BodyFlag[],
  flags: FlagValues,
): boolean {
  return listChangeableSets(operation, members).some(({ flag }) => readSetEntries(flags, flag).hasChanges)
}

function readSetEntries(flags: FlagValues, flag: string) {
  const added = (flags[`add-${flag}`] ?? []) as readonly string[]
  const removed = (flags[`remove-${flag}`] ?? []) as readonly string[]
  return { added, removed, hasChanges: added.length + removed.length > 0 }
}

/**
 * The members of the body that the flags for single entries change, each complete.
 * @param record the record as it is
 * @param resolve replaces names by ids in an entry
 * @throws CommandError with exit code 5 if an entry to remove does not exist
 */
export async function computeSetChanges(
  operation: OperationDescription,
  members: readonly BodyFlag[],
  flags: FlagValues,
  record: OutputRecord,
  resolve: (member: BodyFlag, entry: string) => Promise<string>,
): Promise<(readonly [member: BodyFlag, value: unknown])[]> {
  const changes: (readonly [BodyFlag, unknown])[] = []
  for (const member of listChangeableSets(operation, members)) {
    const { flag, form, path } = member
    const { added, removed, hasChanges } = readSetEntries(flags, flag)
    if (!hasChanges) continue
    assertSingleRoles(`add-${flag}`, member, added)
    const current = getAt(record, path)
    changes.push([
      member,
      form === 'pairs'
        ? changePairs(member, (current ?? {}) as OutputRecord, added, removed)
        : await changeSet(member, (current ?? []) as readonly string[], added, removed, resolve),
    ])
  }
  return changes
}

async function changeSet(
  member: BodyFlag,
  current: readonly string[],
  added: readonly string[],
  removed: readonly string[],
  resolve: (member: BodyFlag, entry: string) => Promise<string>,
): Promise<string[]> {
  const entries = new Set(current)
  for (const text of removed) {
    // An entry may name a record that no longer exists.
    const entry = entries.has(text) ? text : await resolve(member, text)
    if (!entries.delete(entry)) throw missingEntryError(member, text, [...entries])
  }
  for (const text of added) entries.add(await resolve(member, text))
  return [...entries]
}

function changePairs(
  member: BodyFlag,
  current: OutputRecord,
  added: readonly string[],
  removed: readonly string[],
): Record<string, unknown> {
  const pairs: Record<string, unknown> = { ...current }
  for (const key of removed) {
    if (!Object.hasOwn(pairs, key)) throw missingEntryError(member, key, Object.keys(pairs))
    delete pairs[key]
  }
  return { ...pairs, ...Object.fromEntries(added.map((pair) => parseKeyValue(`add-${member.flag}`, pair))) }
}

function missingEntryError({ flag }: BodyFlag, text: string, entries: readonly string[]): CommandError {
  const message = `--remove-${flag}: the record does not have the ${flag} "${text}"`
  return new CommandError(
    EXIT.notFound,
    'NOT_FOUND',
    entries.length > 0 ? message : `${message}, and no other one either`,
    { field: `remove-${flag}`, hint: entries.length > 0 ? `one of ${entries.join(', ')}` : `omit --remove-${flag}` },
  )
}

/** The sets that a body replaces. */
export function listReplacedSets(members: readonly BodyFlag[], body: unknown): BodyFlag[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return []
  return listSets(members).filter(({ path }) => getAt(body, path) !== undefined)
}

/** The entries that are in the record and not in the body, as text for the user: `role abroad`. */
export function listRemovedEntries(sets: readonly BodyFlag[], record: OutputRecord, body: unknown): string[] {
  return sets.flatMap(({ flag, path, form }) => {
    const before = getAt(record, path) ?? []
    const after = getAt(body, path) ?? []
    const keys = (value: unknown) => (form === 'pairs' ? Object.keys(value as OutputRecord) : (value as string[]))
    const keysAfter = new Set(keys(after))
    const names = readDisplayNames(record, path)
    return keys(before).flatMap((entry) => (keysAfter.has(entry) ? [] : [`${flag} ${names.get(entry) ?? entry}`]))
  })
}

/** Role → the same with a name instead of an id, from the display list of the record. */
function readDisplayNames(record: OutputRecord, path: readonly string[]): ReadonlyMap<string, string> {
  const list = getAt(record, [...path.slice(0, -1), `${path.at(-1)}Display`])
  const entries = Array.isArray(list) ? (list as readonly { role?: unknown; name?: unknown }[]) : []
  return new Map(entries.map(({ role, name }) => [String(role), String(name)]))
}
