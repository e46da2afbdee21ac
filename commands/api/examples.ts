// Generates an example for each command that can be run as it is, from the example of its resource and the schemas of the API.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { listPathArguments } from './arguments.ts'
import { type BodyFlag, getAt, listBodyFlags, toTypedFlag } from './body-flags.ts'
import { alwaysAsks } from './confirmations.ts'

/** The placeholder for the id of a record without a name. */
export const ID_PLACEHOLDER = 'ID'

/** An id of another record that is valid, whether such a record exists or not. */
const EXAMPLE_ID = '6fd72218-2e8f-46ac-92d4-236df815fede'

const EXAMPLE_OPERATION = 'listServices'

/** The arguments and flags of a command line that calls the operation. */
export function makeExample(operation: OperationDescription, api: ApiDescription): string {
  const args = listPathArguments(operation, api).map(({ parameter, resource }) =>
    parameter === 'operation' ? EXAMPLE_OPERATION : toExampleName(resource),
  )
  return [...args, ...makeExampleWords(operation, api)].map(quoteShellWord).join(' ')
}

function toExampleName(resource: ResourceDescription | undefined): string {
  return resource?.isNamed ? resource.exampleName : ID_PLACEHOLDER
}

function makeExampleWords(operation: OperationDescription, api: ApiDescription): string[] {
  const { method, path, query, body, returns } = operation
  const resource =
    returns.kind === 'data' || returns.kind === 'empty' || returns.kind === 'raw'
      ? undefined
      : api.resources[returns.resource]
  if (method === 'GET') {
    const filter = query?.filter && (resource?.example.filter ?? findExampleFilter(returns))
    if (filter) return ['--filter', filter]
    return returns.kind === 'record' ? ['-o', 'json'] : []
  }
  const yes = alwaysAsks(operation) ? ['--yes'] : []
  if (!body) return yes
  if (!body.contentTypes.includes('application/json')) return ['--data', '@FILE']
  const members = listBodyFlags(body.schema)
  const created = method === 'POST' && Object.values(api.resources).find((each) => each.path === path)
  if (created) return makeExampleFlags(members, created.example.create, api)
  if (method === 'PUT')
    return isReplaceableByGetOutput(members) ? ['--data', '@FILE'] : makeReplaceWords(operation, members, api)
  const required = members.filter(({ isRequired, defaultValue }) => isRequired && defaultValue === undefined)
  const tag = members.find(({ flag }) => flag === 'tag')
  const exampleMembers = required.length > 0 ? required : [tag ?? members[0] ?? []].flat()
  return [...exampleMembers.flatMap((member) => makeSampleWords(member, api)), ...yes]
}

/** The example filter in the schema of a list that is not of records. */
function findExampleFilter(returns: OperationDescription['returns']): string | undefined {
  return returns.kind === 'data' ? (returns.schema.items?.['x-example-filter'] as string | undefined) : undefined
}

/**
 * Whether the output of `get -o json` is a valid `--data`: not if a secret is required, or if `--data` is the flag of a
 * member.
 */
function isReplaceableByGetOutput(members: readonly BodyFlag[]): boolean {
  return !members.some(({ flag, form, isRequired }) => flag === 'data' || (form === 'secret' && isRequired))
}

function makeReplaceWords(
  operation: OperationDescription,
  members: readonly BodyFlag[],
  api: ApiDescription,
): string[] {
  const example = listPathArguments(operation, api).at(-1)?.resource?.example.create ?? {}
  const flagMembers = members.filter(({ flag }) => flag !== 'name')
  const name = flagMembers.length < members.length ? ['--name', String(example.name)] : []
  return [...name, ...makeExampleFlags(flagMembers, example, api)]
}

/**
 * The words that create the example record: its name as an argument, its other members as flags, without those that are
 * defaults.
 */
function makeExampleFlags(
  members: readonly BodyFlag[],
  example: Readonly<Record<string, unknown>>,
  api: ApiDescription,
): string[] {
  const { name } = example
  const words = typeof name === 'string' && members.some(({ flag }) => flag === 'name') ? [name] : []
  for (const member of members) {
    if (member.flag === 'name') continue
    const value = getAt(example, member.path) ?? undefined
    if (value === undefined && member.isRequired && member.defaultValue === undefined)
      words.push(...makeSampleWords(member, api))
    else if (value !== undefined && JSON.stringify(value) !== JSON.stringify(member.defaultValue))
      words.push(...toExampleFlags(member, value))
  }
  return words
}

function toExampleFlags(member: BodyFlag, value: unknown): string[] {
  const flag = `--${toTypedFlag(member)}`
  switch (member.form) {
    case 'switch':
      return [value ? flag : flag.replace('--', '--no-')]
    case 'set':
      return (value as string[]).flatMap((entry) => [flag, entry])
    case 'pairs':
      return Object.entries(value as object).flatMap(([key, entry]) => [flag, `${key}=${entry}`])
    case 'secret':
      return [flag, 'password.txt']
    default:
      return [flag, typeof value === 'string' ? value : JSON.stringify(value)]
  }
}

/** A valid value of a member that is not part of the example. */
function makeSampleWords(member: BodyFlag, api: ApiDescription): string[] {
  const { schema, form, refersTo } = member
  const flag = `--${toTypedFlag(member)}`
  if (refersTo && form !== 'set') return [flag, toExampleName(api.resources[refersTo])]
  switch (form) {
    case 'switch':
      return [flag]
    case 'number':
      return [flag, String(Math.max(60, Number(schema.minimum ?? 0)))]
    case 'instant':
    case 'minutes':
      return [flag, '24h']
    case 'set':
      return [flag, schema.items?.enum ? String(schema.items.enum[0]) : schema['x-roles'] ? '#staff' : 'north']
    case 'pairs':
      return [flag, 'site=north']
    case 'json':
      return [flag, '{}']
    case 'file':
      return [flag, 'ca.pem']
    case 'secret':
      return [flag, 'password.txt']
    case 'text':
      return [flag, schema.enum ? String(schema.enum[0]) : member.flag === 'id' ? EXAMPLE_ID : member.flag]
  }
}
