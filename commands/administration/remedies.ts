// The command line of a remedy: what a person types to make the change that the controller proposes.
import type { Remedy } from '../../src/access/advice/chain.ts'
import type { ApiDescription } from '../../src/client/api-description.ts'
import { listBodyFlags, toKebabCase, toTypedFlag } from '../api/body-flags.ts'

/** The words of the command, without the program's name. Records are named rather than identified, if that is unambiguous. */
export function toCommandWords(
  { operation, resource: plural, record, values = {}, adds = {}, references = [] }: Remedy,
  api: ApiDescription,
): string[] {
  const resource = api.resources[plural]
  const { name, ...members } = values
  const isNamed = operation === 'create' && typeof name === 'string'
  const names = new Map(references.map((reference) => [reference.id, toNameArgument(reference)]))
  const flags = readFlags(plural, api)
  const toText = (text: string) => toReadable(text, names)
  return [
    resource?.name ?? plural,
    operation,
    ...(record ? [toNameArgument(record)] : []),
    ...(isNamed ? [name] : []),
    ...toRemedyFlags(isNamed ? omitDefaults(plural, members) : values, [], flags, toText),
    ...toRemedyFlags(adds, [], new Map([...flags].map(([path, flag]) => [path, `add-${flag}`])), toText),
    ...toTokenFlags(operation, plural, names, values),
  ]
}

/** Omits the members that `identity create` fills in by itself. */
function omitDefaults(plural: string, members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (plural !== 'identities') return members
  const { type: _, isAdmin: _isAdmin, enrollment: _enrollment, ...rest } = members
  return rest
}

/** The flags for the file of an identity's token, or for that of a router's configuration, which has the token next to it. */
function toTokenFlags(
  operation: Remedy['operation'],
  plural: string,
  names: ReadonlyMap<string, string>,
  { name }: Readonly<Record<string, unknown>>,
): string[] {
  if (operation === 'create' && plural === 'identities') return ['--jwt-file', `${name}.jwt`]
  if (operation === 'create' && plural === 'edge-routers')
    return ['--config-file', `${name}.yml`, '--advertise', 'HOST:PORT']
  if (plural !== 'enrollments') return []
  const [subject = ''] = names.values()
  return ['--jwt-file', `${/^\w[\w.-]*$/.test(subject) ? subject : 'identity'}.jwt`]
}

/** How a command names a record: by its name, unless a command line would take that for something else. */
function toNameArgument({ id, name }: { readonly id: string; readonly name?: string }): string {
  return name === undefined || /^-|^(id|name):/.test(name) ? id : name
}

function toReadable(text: string, names: ReadonlyMap<string, string>): string {
  const isRole = text.startsWith('@')
  const name = names.get(isRole ? text.slice(1) : text)
  if (name === undefined) return text
  return isRole ? `@${name}` : name
}

/** Path of a body's member → its flag. */
function readFlags(plural: string, { operations }: ApiDescription): ReadonlyMap<string, string> {
  const bodies = operations.filter(({ path, body }) => body && path.split('/')[1] === plural)
  return new Map(
    bodies.flatMap(({ body }) =>
      listBodyFlags(body?.schema ?? {}).map((member) => [member.path.join('.'), toTypedFlag(member)] as const),
    ),
  )
}

function toRemedyFlags(
  value: unknown,
  path: readonly string[],
  flags: ReadonlyMap<string, string>,
  toText: (text: string) => string,
): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => toRemedyFlags(entry, path, flags, toText))
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([name, member]) => toRemedyFlags(member, [...path, name], flags, toText))
  }
  const flag = flags.get(path.join('.')) ?? toKebabCase(path)
  if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`]
  const text = toText(String(value))
  // A value that looks like a flag is tied to its own.
  return text.startsWith('-') ? [`--${flag}=${text}`] : [`--${flag}`, text]
}
