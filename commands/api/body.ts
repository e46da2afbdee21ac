// From the flags that were given to the body of a request.
import { makeUsageError } from '../exit-codes.ts'
import { readJson, readSecret, readText } from '../input.ts'
import { parseInstant } from '../times.ts'
import { type BodyFlag, getAt, toTypedFlag } from './body-flags.ts'
import { toValueText } from './flag-definitions.ts'

export type FlagValues = Readonly<Record<string, unknown>>

/** In a record that is sent back as it was read, references stand as objects: their ids are what is meant. */
function withoutObjects(members: readonly BodyFlag[], body: Record<string, unknown>): Record<string, unknown> {
  for (const { path, schema } of members) {
    const value = getAt(body, path) as { id?: unknown } | undefined
    if (schema.type === 'string' && typeof value?.id === 'string') setAt(body, path, value.id)
  }
  return body
}

/** The body that the flags describe, and what was filled in for the person without being asked. */
export async function readBodyFromFlags(
  members: readonly BodyFlag[],
  flags: FlagValues,
  begun: Readonly<Record<string, unknown>> = {},
): Promise<{ body: Record<string, unknown>; assumed: string[] }> {
  const body = withoutObjects(members, structuredClone(begun) as Record<string, unknown>)
  const assumed: string[] = []
  for (const member of members) {
    const given = flags[toTypedFlag(member)]
    if (given !== undefined) setAt(body, member.path, await parseFlagValue(member, given))
    else if (member.standard !== undefined && getAt(body, member.path) === undefined) {
      setAt(body, member.path, await parseFlagValue(member, member.standard))
      // Those inside of a member are more than a person wants to read.
      if (member.path.length === 1) assumed.push(`${member.flag} ${toValueText(member.standard)}`)
    }
  }
  return { body, assumed }
}

/** The flags of required members that the body still lacks. */
export function listMissingFlags(members: readonly BodyFlag[], body: Readonly<Record<string, unknown>>): string[] {
  return members
    .filter(({ isRequired, path }) => isRequired && getAt(body, path) === undefined)
    .map((member) => `--${toTypedFlag(member)}`)
}

/** Puts a value at a path, making what lies above it. */
export function setAt(body: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let inner = body
  for (const name of path.slice(0, -1)) {
    inner[name] = { ...(inner[name] as object | undefined) }
    inner = inner[name] as Record<string, unknown>
  }
  inner[path.at(-1) ?? ''] = value
}

async function parseFlagValue(member: BodyFlag, given: unknown): Promise<unknown> {
  const flag = toTypedFlag(member)
  if (typeof given !== 'string' && !Array.isArray(given)) return given
  switch (member.form) {
    case 'set':
      return withoutBlank(given as string[])
    case 'pairs':
      return Object.fromEntries(withoutBlank(given as string[]).map((pair) => parseKeyValue(flag, pair)))
    case 'json':
      return typeof given === 'string' ? readJson(flag, given) : given
    case 'file':
      return readText(flag, given as string)
    case 'instant':
      return parseInstant(flag, given as string)
    case 'secret':
      return readSecret(flag, given as string)
    default:
      return given
  }
}

/** One empty value stands for none at all: `--role ''` takes all of them away. */
function withoutBlank(values: readonly string[]): readonly string[] {
  return values.length === 1 && values[0] === '' ? [] : values
}

function parseKeyValue(flag: string, pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw makeUsageError(`--${flag} takes KEY=VALUE, not ${pair}`, { field: flag })
  return [pair.slice(0, at), parseScalar(pair.slice(at + 1))]
}

/** `true`, `false`, `null` and numbers as what they are; anything else, and anything in quotes, as text. */
function parseScalar(text: string): unknown {
  if (/^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?|"(?:[^"\\]|\\.)*")$/.test(text)) return JSON.parse(text)
  return text
}
