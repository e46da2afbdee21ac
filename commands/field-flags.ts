// Flags from fields: how the members of a request body are given on a command line.
import { Flags, type Interfaces } from '@oclif/core'
import type { Resource } from '../src/resources/define.ts'
import { type AnyField, type Fields, memberName } from '../src/schema/fields.ts'
import { CommandError, EXIT } from './exit-codes.ts'

type FlagInput = Interfaces.FlagInput
type FlagValues = Readonly<Record<string, unknown>>

/** A field with the flag that sets it. */
interface FlagField {
  readonly flag: string
  readonly field: AnyField
  /** The member of the body, and for members of structured inputs the one inside. */
  readonly path: readonly string[]
}

const SHORT_NAMES: Readonly<Record<string, string>> = { roleAttributes: 'role', tags: 'tag' }

/** The fields of a resource that a command can set, in the order of its definition; the name is an argument instead. */
function settable(resource: Resource, purpose: 'create' | 'update'): FlagField[] {
  const found: FlagField[] = []
  for (const [name, field] of Object.entries(resource.fields)) {
    const { access = 'write' } = field.options
    const isOpen = access === 'write' || (access === 'create' && purpose === 'create')
    if (!isOpen || (name === 'name' && purpose === 'create')) continue
    const member = memberName(name, field)
    found.push({ flag: flagName(member), field, path: [member] })
  }
  if (purpose === 'create') found.push(...inputFlags(resource.inputs))
  return found
}

function inputFlags(inputs: Fields): FlagField[] {
  return Object.entries(inputs).flatMap(([name, field]) =>
    Object.entries(field.kind.members ?? {}).map(([inner, member]) => ({
      flag: flagName(inner),
      field: member,
      path: [name, inner],
    })),
  )
}

export function fieldFlags(resource: Resource, purpose: 'create' | 'update'): FlagInput {
  return Object.fromEntries(settable(resource, purpose).map((entry) => [entry.flag, flagOf(entry, purpose)]))
}

function flagOf({ field }: FlagField, purpose: 'create' | 'update'): Interfaces.Flag<unknown> {
  const { kind, options } = field
  const isRequired = purpose === 'create' && isDemanded(field)
  const common = { description: describe(field, purpose), required: isRequired }
  const choices = kind.schema.enum as readonly string[] | undefined
  if (kind.name === 'boolean') return Flags.boolean({ ...common, allowNo: true }) as Interfaces.Flag<unknown>
  if (kind.name === 'integer')
    return Flags.integer({ ...common, min: options.min, max: options.max }) as Interfaces.Flag<unknown>
  if (kind.name === 'set') return Flags.string({ ...common, multiple: true }) as Interfaces.Flag<unknown>
  if (isMap(field))
    return Flags.string({ ...common, multiple: true, helpValue: 'KEY=VALUE' }) as Interfaces.Flag<unknown>
  if (kind.name === 'json' || kind.name === 'object')
    return Flags.string({ ...common, helpValue: 'JSON' }) as Interfaces.Flag<unknown>
  return Flags.string({ ...common, ...(choices ? { options: [...choices] } : {}) }) as Interfaces.Flag<unknown>
}

function isDemanded({ options }: AnyField): boolean {
  return (options.required === true || options.required === 'create') && options.commandDefault === undefined
}

function describe({ options }: AnyField, purpose: 'create' | 'update'): string {
  const standard =
    purpose === 'create' && options.commandDefault !== undefined ? ` Default: ${String(options.commandDefault)}.` : ''
  return `${options.summary ?? ''}${standard}`.trim()
}

function isMap({ kind }: AnyField): boolean {
  return kind.name === 'json' && kind.schema.type === 'object' && kind.schema.additionalProperties !== undefined
}

/** The body that the flags describe, and what was filled in for the person without being asked. */
export function bodyFromFlags(
  resource: Resource,
  purpose: 'create' | 'update',
  flags: FlagValues,
): { body: Record<string, unknown>; assumed: string[] } {
  const body: Record<string, unknown> = {}
  const assumed: string[] = []
  for (const { flag, field, path } of settable(resource, purpose)) {
    const { commandDefault } = field.options
    if (flags[flag] !== undefined) put(body, path, givenValue(field, flag, flags[flag]))
    else if (purpose === 'create' && commandDefault !== undefined) {
      put(body, path, commandDefault)
      assumed.push(`${flag} ${String(commandDefault)}`)
    }
  }
  return { body, assumed }
}

function put(body: Record<string, unknown>, [outer = '', inner]: readonly string[], value: unknown): void {
  body[outer] = inner === undefined ? value : { ...(body[outer] as object | undefined), [inner]: value }
}

function givenValue(field: AnyField, flag: string, given: unknown): unknown {
  if (isMap(field)) return Object.fromEntries((given as string[]).map((pair) => keyValue(flag, pair)))
  const isJson = field.kind.name === 'json' || field.kind.name === 'object'
  return isJson ? parseJson(flag, given as string) : given
}

function keyValue(flag: string, pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw new CommandError(EXIT.usage, 'USAGE', `--${flag} takes KEY=VALUE, not ${pair}`, { field: flag })
  return [pair.slice(0, at), plainValue(pair.slice(at + 1))]
}

/** `true`, `false`, `null` and numbers as what they are; anything else, and anything in quotes, as text. */
function plainValue(text: string): unknown {
  if (/^(true|false|null|-?\d+(\.\d+)?|"(?:[^"\\]|\\.)*")$/.test(text)) return JSON.parse(text)
  return text
}

function parseJson(flag: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CommandError(EXIT.usage, 'USAGE', `--${flag} is not valid JSON: ${(error as Error).message}`, {
      field: flag,
    })
  }
}

/** The flag that sets a member of a body. */
export function flagName(member: string): string {
  return SHORT_NAMES[member] ?? member.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
