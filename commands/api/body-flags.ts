// Flags from the schema of a request body: how its members are given on a command line, and how they become a body again.
import { Flags, type Interfaces } from '@oclif/core'
import type { JsonSchema } from '../../src/schema/json-schema.ts'
import { connectionFlags } from '../connection.ts'
import { usageError } from '../exit-codes.ts'
import { jsonFrom, secretFrom, textFrom } from '../input.ts'
import { instantFrom } from '../times.ts'

/** How the value of a flag is written. */
type Form = 'switch' | 'number' | 'text' | 'file' | 'instant' | 'secret' | 'set' | 'pairs' | 'json'

/** A member of a body with the flag that sets it. */
export interface BodyFlag {
  readonly flag: string
  /** Where in the body it stands: `['primary', 'cert', 'allowed']`. */
  readonly path: readonly string[]
  readonly schema: JsonSchema
  readonly form: Form
  readonly isRequired: boolean
  /** What is sent, and said to be sent, where a required member is not given. */
  readonly standard: unknown
  /** The kinds of record that have this member, where not all have it. */
  readonly only: readonly string[]
  /** The resource (plural) that its values are ids of; in roles behind an `@`. */
  readonly refersTo: string | undefined
}

export type FlagValues = Readonly<Record<string, unknown>>

const SHORT_NAMES: Readonly<Record<string, string>> = {
  roleAttributes: 'role',
  tags: 'tag',
  typeId: 'type',
  'enrollment.ott': 'ott',
  'enrollment.ottca': 'ottca',
  'enrollment.updb': 'updb',
}

/** What members refer to whose schema does not say so. */
const REFERENCES: Readonly<Record<string, string>> = { 'enrollment.ottca': 'cas' }

/** For members that the API demands, and people would rather not work out. */
const STANDARDS: Readonly<Record<string, string>> = { expiresAt: '3h' }

/** The members that flags can set, in the order of the schema; structured members are taken apart, of a list it is one entry. */
export function bodyFlags(schema: JsonSchema): BodyFlag[] {
  if (schema.type === 'array') return bodyFlags(schema.items ?? {})
  const alternatives = schema.oneOf as readonly JsonSchema[] | undefined
  return alternatives ? merged(alternatives) : membersOf(schema, [], true)
}

/** Bodies of several kinds: a flag for each member of any of them. */
function merged(alternatives: readonly JsonSchema[]): BodyFlag[] {
  const kinds = kindNames(alternatives)
  const found = new Map<string, BodyFlag & { only: string[] }>()
  for (const [at, alternative] of alternatives.entries()) {
    for (const member of membersOf(alternative, [], true)) {
      const known = found.get(member.flag)
      if (known) known.only.push(kinds[at] ?? '')
      else found.set(member.flag, { ...member, only: [kinds[at] ?? ''] })
    }
  }
  return [...found.values()].map((member) =>
    member.only.length === alternatives.length ? { ...member, only: [] } : { ...member, isRequired: false },
  )
}

/** What the alternatives are called, in their order: the values that tell them apart. */
function kindNames(alternatives: readonly JsonSchema[]): readonly string[] {
  const [first] = alternatives
  const discriminating = Object.values(first?.properties ?? {}).find(
    (schema) => schema.enum?.length === alternatives.length,
  )
  return (discriminating?.enum ?? []).map(String)
}

function membersOf(schema: JsonSchema, above: readonly string[], isAboveRequired: boolean): BodyFlag[] {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    if (member.readOnly) return []
    const path = [...above, name]
    const isRequired = isAboveRequired && required.has(name)
    if (member.properties && member['x-command-default'] === undefined) return membersOf(member, path, isRequired)
    if (member.properties)
      return withStandards(membersOf(member, path, isRequired), member['x-command-default'], path.length)
    const standard = member['x-command-default'] ?? (isRequired ? STANDARDS[name] : undefined)
    const refersTo = (member['x-refers-to'] as string | undefined) ?? REFERENCES[path.join('.')]
    return [
      {
        flag: flagName(path, refersTo !== undefined),
        path,
        schema: member,
        form: formOf(name, member),
        isRequired,
        standard,
        only: [],
        refersTo,
      },
    ]
  })
}

/** Standards given for a whole object, handed to its members. */
function withStandards(members: readonly BodyFlag[], standards: unknown, depth: number): BodyFlag[] {
  return members.map((member) => ({
    ...member,
    standard: valueAt(standards, member.path.slice(depth)) ?? member.standard,
  }))
}

/** What stands at a path of a value, if anything does. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)
}

function flagName(path: readonly string[], isReference: boolean): string {
  const short = SHORT_NAMES[path.join('.')]
  const whole = kebab(path)
  // Names are taken where ids are asked, so the flag does not speak of ids: `--identity laptop`.
  const plain = short ?? (isReference ? whole.replace(/-id$/, '') : whole)
  return plain in connectionFlags ? whole : plain
}

function kebab(path: readonly string[]): string {
  return path.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join('-')
}

function formOf(name: string, schema: JsonSchema): Form {
  if (schema.writeOnly) return 'secret'
  if (schema.format === 'date-time') return 'instant'
  switch (schema.type) {
    case 'boolean':
      return 'switch'
    case 'integer':
      return 'number'
    case 'string':
      return name.endsWith('Pem') ? 'file' : 'text'
    case 'array':
      return schema.items?.type === 'string' ? 'set' : 'json'
    case 'object':
      return isPlain(schema.additionalProperties) ? 'pairs' : 'json'
    default:
      return 'json'
  }
}

/** Values that can be written after `KEY=`. */
function isPlain(schema: unknown): boolean {
  const types = [(schema as JsonSchema | undefined)?.type ?? []].flat()
  return types.length > 0 && types.every((type) => type !== 'object' && type !== 'array')
}

/** The flag that a person types; secrets are named by the file they are read from. */
export function typedFlag({ flag, form }: BodyFlag): string {
  return form === 'secret' ? `${flag}-file` : flag
}

export function oclifFlags(members: readonly BodyFlag[]): Interfaces.FlagInput {
  return Object.fromEntries(members.map((member) => [typedFlag(member), oclifFlag(member)]))
}

const HELP_VALUES: Partial<Record<Form, string>> = {
  file: 'PEM|@FILE',
  instant: 'TIME',
  secret: 'FILE',
  pairs: 'KEY=VALUE',
  json: 'JSON|@FILE',
}

function oclifFlag(member: BodyFlag): Interfaces.Flag<unknown> {
  const { form, schema, flag, path } = member
  const helpValue = HELP_VALUES[form]
  // The member's full name does, too.
  const aliases = flag === kebab(path) ? [] : [kebab(path)]
  const common = {
    description: describe(member),
    ...(helpValue ? { helpValue } : {}),
    ...(aliases.length > 0 ? { aliases } : {}),
  }
  const make = (): unknown => {
    switch (form) {
      case 'switch':
        return Flags.boolean({ description: common.description, allowNo: true })
      case 'number':
        return Flags.integer({
          ...common,
          ...(schema.minimum === undefined ? {} : { min: schema.minimum as number }),
          ...(schema.maximum === undefined ? {} : { max: schema.maximum as number }),
        })
      case 'set':
      case 'pairs':
        return Flags.string({ ...common, multiple: true, multipleNonGreedy: true })
      default:
        return Flags.string({ ...common, ...(schema.enum ? { options: schema.enum.map(String) } : {}) })
    }
  }
  return make() as Interfaces.Flag<unknown>
}

function describe({ schema, form, isRequired, standard, only }: BodyFlag): string {
  const parts = [
    only.length > 0 ? `${only.join(', ')}:` : '',
    isRequired && standard === undefined ? '(required)' : '',
    schema.description ?? '',
    form === 'instant' ? 'A time such as 2030-01-31T12:00:00Z, or from now: 90m, 24h, 7d.' : '',
    form === 'set' || form === 'pairs' ? 'May be given several times.' : '',
    standard === undefined ? '' : `Default: ${spokenValue(standard)}.`,
  ]
  return parts.filter((part) => part !== '').join(' ')
}

function spokenValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** In a record that is sent back as it was read, references stand as objects: their ids are what is meant. */
function withoutObjects(members: readonly BodyFlag[], body: Record<string, unknown>): Record<string, unknown> {
  for (const { path, schema } of members) {
    const value = valueAt(body, path) as { id?: unknown } | undefined
    if (schema.type === 'string' && typeof value?.id === 'string') setAt(body, path, value.id)
  }
  return body
}

/** The body that the flags describe, and what was filled in for the person without being asked. */
export async function bodyFrom(
  members: readonly BodyFlag[],
  flags: FlagValues,
  begun: Readonly<Record<string, unknown>> = {},
): Promise<{ body: Record<string, unknown>; assumed: string[] }> {
  const body = withoutObjects(members, structuredClone(begun) as Record<string, unknown>)
  const assumed: string[] = []
  for (const member of members) {
    const given = flags[typedFlag(member)]
    if (given !== undefined) setAt(body, member.path, await givenValue(member, given))
    else if (member.standard !== undefined && valueAt(body, member.path) === undefined) {
      setAt(body, member.path, await givenValue(member, member.standard))
      // Those inside of a member are more than a person wants to read.
      if (member.path.length === 1) assumed.push(`${member.flag} ${spokenValue(member.standard)}`)
    }
  }
  return { body, assumed }
}

/** The flags of required members that the body still lacks. */
export function missingFlags(members: readonly BodyFlag[], body: Readonly<Record<string, unknown>>): string[] {
  return members
    .filter(({ isRequired, path }) => isRequired && valueAt(body, path) === undefined)
    .map((member) => `--${typedFlag(member)}`)
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

async function givenValue(member: BodyFlag, given: unknown): Promise<unknown> {
  const flag = typedFlag(member)
  if (typeof given !== 'string' && !Array.isArray(given)) return given
  switch (member.form) {
    case 'set':
      return withoutBlank(given as string[])
    case 'pairs':
      return Object.fromEntries(withoutBlank(given as string[]).map((pair) => keyValue(flag, pair)))
    case 'json':
      return typeof given === 'string' ? jsonFrom(flag, given) : given
    case 'file':
      return textFrom(flag, given as string)
    case 'instant':
      return instantFrom(flag, given as string)
    case 'secret':
      return secretFrom(flag, given as string)
    default:
      return given
  }
}

/** One empty value stands for none at all: `--role ''` takes all of them away. */
function withoutBlank(values: readonly string[]): readonly string[] {
  return values.length === 1 && values[0] === '' ? [] : values
}

function keyValue(flag: string, pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw usageError(`--${flag} takes KEY=VALUE, not ${pair}`, { field: flag })
  return [pair.slice(0, at), plainValue(pair.slice(at + 1))]
}

/** `true`, `false`, `null` and numbers as what they are; anything else, and anything in quotes, as text. */
function plainValue(text: string): unknown {
  if (/^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?|"(?:[^"\\]|\\.)*")$/.test(text)) return JSON.parse(text)
  return text
}
