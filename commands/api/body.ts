// Builds the body of a request from flags.
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { type CommandError, makeUsageError } from '../foundation/exit-codes.ts'
import { readJson, readPem, readSecret } from '../foundation/flag-values.ts'
import { parseInstant, parseMinutes } from '../foundation/times.ts'
import { type BodyFlag, getAt, toTypedFlag } from './body-flags.ts'
import { toValueText } from './flag-definitions.ts'

export type FlagValues = Readonly<Record<string, unknown>>

/** Replaces reference objects by their ids, so that a record can be sent as the API returned it. */
function flattenReferences(members: readonly BodyFlag[], body: Record<string, unknown>): Record<string, unknown> {
  for (const { path, schema } of members) {
    const value = getAt(body, path) as { id?: unknown } | undefined
    if (schema.type === 'string' && typeof value?.id === 'string') setAt(body, path, value.id)
  }
  return body
}

/**
 * The body that the flags describe, and the defaults that were filled in, as text for the user.
 * @param initial the members of `--data`, which flags override
 */
export async function readBodyFromFlags(
  members: readonly BodyFlag[],
  flags: FlagValues,
  initial: Readonly<Record<string, unknown>> = {},
): Promise<{ body: Record<string, unknown>; defaults: string[] }> {
  const body = flattenReferences(members, structuredClone(initial) as Record<string, unknown>)
  const defaults: string[] = []
  for (const member of members) {
    const value = flags[toTypedFlag(member)]
    if (value !== undefined) setAt(body, member.path, await parseFlagValue(member, value))
    else if (member.defaultValue !== undefined && getAt(body, member.path) === undefined) {
      setAt(body, member.path, await parseFlagValue(member, member.defaultValue))
      // Defaults of nested members are too detailed for a message.
      if (member.path.length === 1) defaults.push(`${member.flag} ${toValueText(member.defaultValue)}`)
    }
  }
  return { body, defaults }
}

/** The flags of required members that are missing from the body. */
export function listMissingFlags(members: readonly BodyFlag[], body: Readonly<Record<string, unknown>>): string[] {
  return members
    .filter(({ isRequired, path }) => isRequired && getAt(body, path) === undefined)
    .map((member) => `--${toTypedFlag(member)}`)
}

/** Sets the value at a path, and creates the objects above it. */
export function setAt(body: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let inner = body
  for (const name of path.slice(0, -1)) {
    inner[name] = { ...(inner[name] as object | undefined) }
    inner = inner[name] as Record<string, unknown>
  }
  inner[path.at(-1) ?? ''] = value
}

async function parseFlagValue(member: BodyFlag, value: unknown): Promise<unknown> {
  const flag = toTypedFlag(member)
  if (typeof value !== 'string' && !Array.isArray(value)) return value
  if (value === '' && member.refersTo !== undefined) throw emptyReferenceError(flag, member)
  switch (member.form) {
    case 'set':
      assertSingleRoles(flag, member, value as string[])
      return dropSingleBlank(value as string[])
    case 'pairs':
      return Object.fromEntries(dropSingleBlank(value as string[]).map((pair) => parseKeyValue(flag, pair)))
    case 'json':
      return typeof value === 'string' ? readJson(flag, value) : value
    case 'file':
      return readPem(flag, value as string)
    case 'instant':
      return parseInstant(flag, value as string)
    case 'minutes':
      return parseMinutes(flag, value as string)
    case 'secret':
      return readSecret(flag, value as string)
    default:
      return value
  }
}

/** The error for a reference to no name, which is more often an unset variable than a wish to remove the reference. */
function emptyReferenceError(flag: string, { path, schema }: BodyFlag): CommandError {
  const cleared: Record<string, unknown> = {}
  setAt(cleared, path, null)
  const alternative = schema.nullable ? `; for none: --data ${quoteShellWord(JSON.stringify(cleared))}` : ''
  return makeUsageError(`--${flag} is empty`, { field: flag, hint: `the name or id of a record${alternative}` })
}

/** A single empty value is an empty list: `--role ''` removes all roles. */
function dropSingleBlank(values: readonly string[]): readonly string[] {
  return values.length === 1 && values[0] === '' ? [] : values
}

/**
 * Each value of a set of roles is one role: a list in one value would be an attribute that contains commas.
 * @throws CommandError with exit code 2 if a value looks like a list
 */
export function assertSingleRoles(flag: string, { schema, path }: BodyFlag, values: readonly string[]): void {
  const isAttributes = path.join('.') === 'roleAttributes'
  if (!isAttributes && !schema['x-roles']) return
  const list = values.find((value) => (isAttributes ? value.includes(',') : /,\s*[#@]/.test(value)))
  if (list === undefined) return
  const entries = list.split(',').map((entry) => entry.trim())
  const hint = toCommandLine(
    '',
    entries.flatMap((entry) => [`--${flag}`, entry]),
  ).replace(/^controller /, '')
  throw makeUsageError(`--${flag} takes one entry at a time, not the list ${list}; --data takes commas in an entry`, {
    field: flag,
    hint,
  })
}

export function parseKeyValue(flag: string, pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw makeUsageError(`--${flag} must be KEY=VALUE, not ${pair}`, { field: flag })
  return [pair.slice(0, at), parseScalar(pair.slice(at + 1))]
}

/**
 * Parses `null`, quoted strings, and the booleans and numbers that JSON writes back identically: `1.10` and the digits of a long
 * serial number stay text.
 */
function parseScalar(text: string): unknown {
  if (/^(true|false|null|"(?:[^"\\]|\\.)*")$/.test(text)) return JSON.parse(text)
  return /^-?\d/.test(text) && String(Number(text)) === text ? Number(text) : text
}
