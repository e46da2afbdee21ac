// Derives flags from the schema of a request body: their names, and the formats of their values.
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { connectionFlags } from '../client/connection.ts'

/** The format of a flag's value. */
export type FlagForm =
  | 'switch'
  | 'number'
  | 'text'
  | 'file'
  | 'instant'
  | 'minutes'
  | 'secret'
  | 'set'
  | 'pairs'
  | 'json'

/** A member of a body, and the flag that sets it. */
export interface BodyFlag {
  readonly flag: string
  /** Its path in the body: `['primary', 'cert', 'allowed']`. */
  readonly path: readonly string[]
  readonly schema: JsonSchema
  readonly form: FlagForm
  readonly isRequired: boolean
  /** The value that is sent, and reported to the user, if the flag is not set. */
  readonly defaultValue: unknown
  /** The kinds of record that have this member; empty if all have it. */
  readonly only: readonly string[]
  /** The plural of the resource whose ids it contains; in roles they follow an `@`. */
  readonly refersTo: string | undefined
}

const SHORT_NAMES: Readonly<Record<string, string>> = {
  permissions: 'permission',
  roleAttributes: 'role',
  tags: 'tag',
  certPem: 'cert',
  typeId: 'type',
  durationMinutes: 'duration',
  expiresAt: 'expires-in',
  'enrollment.expiresAt': 'expires-in',
  'enrollment.ott': 'ott',
  'enrollment.ottca': 'ottca',
  'enrollment.updb': 'updb',
}

/** The resources that members refer to, for schemas that do not state it. */
const REFERENCES: Readonly<Record<string, string>> = { 'enrollment.ottca': 'cas' }

/** Defaults of members that the API requires, but that users should not have to set. */
const DEFAULTS: Readonly<Record<string, string>> = { expiresAt: '3h' }

/**
 * The members that flags can set, in the order of the schema. Objects are flattened; for a list, the members are those
 * of one entry.
 */
export function listBodyFlags(schema: JsonSchema): BodyFlag[] {
  if (schema.type === 'array') return listBodyFlags(schema.items ?? {})
  const alternatives = (schema.oneOf ?? schema.anyOf) as readonly JsonSchema[] | undefined
  return alternatives ? mergeAlternatives(alternatives) : flattenMembers(schema, [], true)
}

/** Merges the members of a body with several kinds: one flag for each member of any kind. */
function mergeAlternatives(alternatives: readonly JsonSchema[]): BodyFlag[] {
  const kinds = listKindNames(alternatives)
  const members = new Map<string, BodyFlag>()
  for (const [at, alternative] of alternatives.entries()) {
    for (const member of flattenMembers(alternative, [], true)) {
      const earlier = members.get(member.flag)
      const only = [...(earlier?.only ?? []), kinds[at] ?? '']
      members.set(member.flag, {
        ...(earlier ?? member),
        schema: withChoices(member.schema, earlier?.schema.enum),
        only,
      })
    }
  }
  return [...members.values()].map((member) =>
    member.only.length === alternatives.length ? { ...member, only: [] } : { ...member, isRequired: false },
  )
}

/** The schema with additional enum values. */
function withChoices(schema: JsonSchema, others: readonly unknown[] = []): JsonSchema {
  return schema.enum ? { ...schema, enum: [...new Set([...others, ...schema.enum])] } : schema
}

/** The names of the kinds, in their order: the value of the member that can have only one. */
function listKindNames(alternatives: readonly JsonSchema[]): readonly string[] {
  return alternatives.map(({ properties = {} }) =>
    String(Object.values(properties).find((schema) => schema.enum?.length === 1)?.enum?.[0]),
  )
}

function flattenMembers(schema: JsonSchema, parentPath: readonly string[], isParentRequired: boolean): BodyFlag[] {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    if (member.readOnly) return []
    const path = [...parentPath, name]
    const isRequired = isParentRequired && required.has(name)
    if (member.properties && member['x-command-default'] === undefined) return flattenMembers(member, path, isRequired)
    if (member.properties)
      return withDefaults(flattenMembers(member, path, isRequired), member['x-command-default'], path.length)
    const defaultValue = member['x-command-default'] ?? (isRequired ? DEFAULTS[name] : undefined)
    const refersTo = (member['x-refers-to'] as string | undefined) ?? REFERENCES[path.join('.')]
    return [
      {
        flag: toFlagName(path, refersTo !== undefined),
        path,
        schema: member,
        form: toFlagForm(name, member),
        isRequired,
        defaultValue,
        only: [],
        refersTo,
      },
    ]
  })
}

/** Applies the default of an object to its members. */
function withDefaults(members: readonly BodyFlag[], defaults: unknown, depth: number): BodyFlag[] {
  return members.map((member) => ({
    ...member,
    defaultValue: getAt(defaults, member.path.slice(depth)) ?? member.defaultValue,
  }))
}

/** The value at a path; undefined if there is none. */
export function getAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)
}

function toFlagName(path: readonly string[], isReference: boolean): string {
  const short = SHORT_NAMES[path.join('.')]
  const fullName = toKebabCase(path)
  // A reference accepts names, so its flag has no suffix `-id`: `--identity laptop`.
  const name = short ?? (isReference ? fullName.replace(/-id$/, '') : fullName)
  return name in connectionFlags ? fullName : name
}

/** `['enrollment', 'jwtSigner']` → `enrollment-jwt-signer` */
export function toKebabCase(path: readonly string[]): string {
  return path.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join('-')
}

function toFlagForm(name: string, schema: JsonSchema): FlagForm {
  if (schema.writeOnly) return 'secret'
  if (name === 'durationMinutes') return 'minutes'
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
      return isScalarType(schema.additionalProperties) ? 'pairs' : 'json'
    default:
      return 'json'
  }
}

/** Whether all values of the schema can be written after `KEY=`. */
function isScalarType(schema: unknown): boolean {
  const types = [(schema as JsonSchema | undefined)?.type ?? []].flat()
  return types.length > 0 && types.every((type) => type !== 'object' && type !== 'array')
}

/** The flag as it is typed; the flags of secrets take a file. */
export function toTypedFlag({ flag, form }: BodyFlag): string {
  return form === 'secret' ? `${flag}-file` : flag
}
