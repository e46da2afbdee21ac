// Flags from the schema of a request body: which there are, what they are called, and how their values are written.
import type { JsonSchema } from '../../src/schema/json-schema.ts'
import { connectionFlags } from '../connection.ts'

/** How the value of a flag is written. */
export type FlagForm = 'switch' | 'number' | 'text' | 'file' | 'instant' | 'secret' | 'set' | 'pairs' | 'json'

/** A member of a body with the flag that sets it. */
export interface BodyFlag {
  readonly flag: string
  /** Where in the body it stands: `['primary', 'cert', 'allowed']`. */
  readonly path: readonly string[]
  readonly schema: JsonSchema
  readonly form: FlagForm
  readonly isRequired: boolean
  /** What is sent, and said to be sent, where a required member is not given. */
  readonly standard: unknown
  /** The kinds of record that have this member, where not all have it. */
  readonly only: readonly string[]
  /** The resource (plural) that its values are ids of; in roles behind an `@`. */
  readonly refersTo: string | undefined
}

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
export function listBodyFlags(schema: JsonSchema): BodyFlag[] {
  if (schema.type === 'array') return listBodyFlags(schema.items ?? {})
  const alternatives = (schema.oneOf ?? schema.anyOf) as readonly JsonSchema[] | undefined
  return alternatives ? mergeAlternatives(alternatives) : listMembers(schema, [], true)
}

/** Bodies of several kinds: a flag for each member of any of them. */
function mergeAlternatives(alternatives: readonly JsonSchema[]): BodyFlag[] {
  const kinds = kindNames(alternatives)
  const found = new Map<string, BodyFlag>()
  for (const [at, alternative] of alternatives.entries()) {
    for (const member of listMembers(alternative, [], true)) {
      const known = found.get(member.flag)
      const only = [...(known?.only ?? []), kinds[at] ?? '']
      found.set(member.flag, { ...(known ?? member), schema: withChoices(member.schema, known?.schema.enum), only })
    }
  }
  return [...found.values()].map((member) =>
    member.only.length === alternatives.length ? { ...member, only: [] } : { ...member, isRequired: false },
  )
}

/** The schema of a member that may have these values, too. */
function withChoices(schema: JsonSchema, others: readonly unknown[] = []): JsonSchema {
  return schema.enum ? { ...schema, enum: [...new Set([...others, ...schema.enum])] } : schema
}

/** What the alternatives are called, in their order: the one value of a member that tells them apart. */
function kindNames(alternatives: readonly JsonSchema[]): readonly string[] {
  return alternatives.map(({ properties = {} }) =>
    String(Object.values(properties).find((schema) => schema.enum?.length === 1)?.enum?.[0]),
  )
}

function listMembers(schema: JsonSchema, above: readonly string[], isAboveRequired: boolean): BodyFlag[] {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    if (member.readOnly) return []
    const path = [...above, name]
    const isRequired = isAboveRequired && required.has(name)
    if (member.properties && member['x-command-default'] === undefined) return listMembers(member, path, isRequired)
    if (member.properties)
      return withStandards(listMembers(member, path, isRequired), member['x-command-default'], path.length)
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
    standard: getAt(standards, member.path.slice(depth)) ?? member.standard,
  }))
}

/** What stands at a path of a value, if anything does. */
export function getAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)
}

function flagName(path: readonly string[], isReference: boolean): string {
  const short = SHORT_NAMES[path.join('.')]
  const whole = toKebabCase(path)
  // Names are taken where ids are asked, so the flag does not speak of ids: `--identity laptop`.
  const plain = short ?? (isReference ? whole.replace(/-id$/, '') : whole)
  return plain in connectionFlags ? whole : plain
}

export function toKebabCase(path: readonly string[]): string {
  return path.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join('-')
}

function formOf(name: string, schema: JsonSchema): FlagForm {
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
export function toTypedFlag({ flag, form }: BodyFlag): string {
  return form === 'secret' ? `${flag}-file` : flag
}
