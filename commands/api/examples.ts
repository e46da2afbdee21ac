// Examples that work: for each command a line to paste, from the example of its resource and the schemas of the API.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { quoteShellWord } from '../shell-words.ts'
import { listPathArguments } from './arguments.ts'
import { type BodyFlag, getAt, listBodyFlags, toTypedFlag } from './body-flags.ts'

/** What stands for the id of a record that has no name. */
export const SOME_ID = 'ID'

/** The rest of a command line that calls the operation. */
export function makeExample(operation: OperationDescription, api: ApiDescription): string {
  const args = listPathArguments(operation, api).map(({ resource }) => exampleName(resource))
  return [...args, ...exampleWords(operation, api)].map(quoteShellWord).join(' ')
}

function exampleName(resource: ResourceDescription | undefined): string {
  return resource?.isNamed ? resource.exampleName : SOME_ID
}

function exampleWords(operation: OperationDescription, api: ApiDescription): string[] {
  const { method, path, query, body, returns } = operation
  const resource =
    returns.kind === 'data' || returns.kind === 'empty' || returns.kind === 'raw'
      ? undefined
      : api.resources[returns.resource]
  if (method === 'GET') {
    const filter = query?.filter && (resource?.example.filter ?? exampleFilter(returns))
    if (filter) return ['--filter', filter]
    return returns.kind === 'record' ? ['-o', 'json'] : []
  }
  if (!body) return method === 'DELETE' ? ['--yes'] : []
  if (!body.contentTypes.includes('application/json')) return ['--data', '@FILE']
  const members = listBodyFlags(body.schema)
  if (resource && path === `/${resource.plural}`) return exampleFlags(members, resource.example.create, api)
  if (method === 'PUT') return isWhatGetShows(members) ? ['--data', '@FILE'] : replacingWords(operation, members, api)
  const required = members.filter(({ isRequired, standard }) => isRequired && standard === undefined)
  const tag = members.find(({ flag }) => flag === 'tag')
  const shown = required.length > 0 ? required : [tag ?? members[0] ?? []].flat()
  return [...shown.flatMap((member) => sampleWords(member, api)), ...(method === 'DELETE' ? ['--yes'] : [])]
}

/** Of lists that are not of records: what their schema says. */
function exampleFilter(returns: OperationDescription['returns']): string | undefined {
  return returns.kind === 'data' ? (returns.schema.items?.['x-example-filter'] as string | undefined) : undefined
}

/** Whether a record replaces itself as `get -o json` shows it: not where secrets are owed, or where `--data` is one member. */
function isWhatGetShows(members: readonly BodyFlag[]): boolean {
  return !members.some(({ flag, form, isRequired }) => flag === 'data' || (form === 'secret' && isRequired))
}

function replacingWords(operation: OperationDescription, members: readonly BodyFlag[], api: ApiDescription): string[] {
  const example = listPathArguments(operation, api).at(-1)?.resource?.example.create ?? {}
  const offered = members.filter(({ flag }) => flag !== 'name')
  const name = offered.length < members.length ? ['--name', String(example.name)] : []
  return [...name, ...exampleFlags(offered, example, api)]
}

/** The flags that make the example record; a name is an argument, and what is assumed anyway is left out. */
function exampleFlags(
  members: readonly BodyFlag[],
  example: Readonly<Record<string, unknown>>,
  api: ApiDescription,
): string[] {
  const { name } = example
  const words = typeof name === 'string' && members.some(({ flag }) => flag === 'name') ? [name] : []
  for (const member of members) {
    if (member.flag === 'name') continue
    const value = getAt(example, member.path) ?? undefined
    if (value === undefined && member.isRequired && member.standard === undefined)
      words.push(...sampleWords(member, api))
    else if (value !== undefined && JSON.stringify(value) !== JSON.stringify(member.standard))
      words.push(...valueWords(member, value))
  }
  return words
}

function valueWords(member: BodyFlag, value: unknown): string[] {
  const flag = `--${toTypedFlag(member)}`
  switch (member.form) {
    case 'switch':
      return [value ? flag : flag.replace('--', '--no-')]
    case 'set':
      return (value as string[]).flatMap((one) => [flag, one])
    case 'pairs':
      return Object.entries(value as object).flatMap(([key, one]) => [flag, `${key}=${one}`])
    case 'secret':
      return [flag, 'password.txt']
    default:
      return [flag, typeof value === 'string' ? value : JSON.stringify(value)]
  }
}

/** A value that fits the member, where no example gives one. */
function sampleWords(member: BodyFlag, api: ApiDescription): string[] {
  const { schema, form, refersTo } = member
  const flag = `--${toTypedFlag(member)}`
  if (refersTo && form !== 'set') return [flag, exampleName(api.resources[refersTo])]
  switch (form) {
    case 'switch':
      return [flag]
    case 'number':
      return [flag, String(Math.max(60, Number(schema.minimum ?? 0)))]
    case 'instant':
      return [flag, '24h']
    case 'set':
      return [flag, schema.items?.enum ? String(schema.items.enum[0]) : schema['x-roles'] ? '#staff' : 'north']
    case 'pairs':
      return [flag, 'site=north']
    case 'json':
      return [flag, '{}']
    case 'file':
      return [flag, '@ca.pem']
    case 'secret':
      return [flag, 'password.txt']
    case 'text':
      return [flag, schema.enum ? String(schema.enum[0]) : member.flag]
  }
}
