// Generates a command for each operation of the API.
import { Flags, type Interfaces } from '@oclif/core'
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { hasAlternatePath, REPLACED_OPERATIONS, splitPath, toCommandId } from '../foundation/naming.ts'
import { optionalArgument } from '../framework/arguments.ts'
import { type CommandClass, type CommandDescription, defineConnectedCommand } from '../framework/connected.ts'
import { listPathArguments, toOclifArguments } from './arguments.ts'
import { canAsk } from './confirmations.ts'
import { makeExample } from './examples.ts'
import { toOclifFlags } from './flag-definitions.ts'
import { runTask } from './perform.ts'
import { makeSetFlags } from './set-changes.ts'
import { bulkFlags } from './targets.ts'
import { type CommandTask, makeTask, toQueryFlag } from './task.ts'

/**
 * The commands of the operations, by id. Each is created at its first use, because one process runs one command.
 * @throws Error if two operations have the same command id
 */
export function makeOperationCommands(api: ApiDescription): Record<string, CommandClass> {
  const commands: Record<string, CommandClass> = {}
  const ids = api.operations.map((operation) => toCommandId(operation, api))
  const allIds = new Set(ids)
  for (const [at, operation] of api.operations.entries()) {
    if (REPLACED_OPERATIONS[operation.id] || hasAlternatePath(operation, api)) continue
    const id = ids[at] ?? ''
    if (id in commands) throw new Error(`duplicate command id ${id} of operation ${operation.id}`)
    let command: CommandClass | undefined
    Object.defineProperty(commands, id, {
      enumerable: true,
      configurable: true,
      get: () => (command ??= makeOperationCommand(id, operation, api, allIds)),
    })
  }
  return commands
}

function makeOperationCommand(
  id: string,
  operation: OperationDescription,
  api: ApiDescription,
  allIds: ReadonlySet<string>,
): CommandClass {
  const task = makeTask(operation, api)
  return defineConnectedCommand({
    summary: operation.summary,
    aliases: listAliasIds(id, operation, api).filter((alias) => !allIds.has(alias)),
    args: makeArguments(task),
    flags: makeFlags(task),
    ...listOptionalValues(operation),
    example: makeExample(operation, api),
    isPublic: operation.isPublic ?? false,
    run: (run) => runTask(task, run),
  })
}

/** Other words for verbs, which other command lines use. */
const VERB_ALIASES: Readonly<Record<string, string>> = { list: 'ls', delete: 'rm', get: 'show', update: 'edit' }

/**
 * The ids of the same command under the other names of the resource, and other words for its verb: `identities:list` and
 * `identity:ls` for `identity:list`.
 */
function listAliasIds(id: string, { path }: OperationDescription, api: ApiDescription): string[] {
  const resource = api.resources[splitPath(path)[0] ?? '']
  const [noun = '', verb] = id.split(':')
  if (verb === undefined) return []
  const otherVerb = VERB_ALIASES[verb]
  const { plural, otherName } = resource?.name === noun ? resource : {}
  const nouns = new Set([noun, plural ?? noun, ...(otherName ? [otherName.name, otherName.plural] : [])])
  return [...nouns].flatMap((name) => [`${name}:${verb}`, ...(otherVerb ? [`${name}:${otherVerb}`] : [])])
}

function makeArguments({ operation, api, isNamedByArgument, isBulk }: CommandTask): Interfaces.ArgInput {
  if (isBulk) return toOclifArguments(listPathArguments(operation, api), true)
  const name = optionalArgument({ description: 'Name of the new record.' })
  return { ...toOclifArguments(listPathArguments(operation, api)), ...(isNamedByArgument ? { name } : {}) }
}

function makeFlags(task: CommandTask): Interfaces.FlagInput {
  const { operation, members, isNamedByArgument, takesData, isText, carriesJwt, isBulk } = task
  const flagMembers = isNamedByArgument ? members.filter(({ flag }) => flag !== 'name') : members
  return {
    ...toOclifFlags(flagMembers),
    ...makeSetFlags(operation, members),
    ...(takesData ? { data: makeDataFlag(isText) } : {}),
    ...makeQueryFlags(operation),
    ...(carriesJwt ? JWT_FLAGS : {}),
    ...task.extension?.flags,
    ...(isBulk ? bulkFlags : {}),
    ...(operation.method === 'GET' && operation.returns.kind !== 'raw' ? { watch: watchFlag } : {}),
    ...(operation.canDryRun ? { 'dry-run': dryRunFlag } : {}),
    ...(canAsk(task) ? { yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }) } : {}),
  }
}

function makeDataFlag(isText: boolean): Interfaces.Flag<unknown> {
  const description = isText
    ? '(required) The text to send; @FILE reads it from a file, - from stdin.'
    : 'The body as JSON; @FILE reads it from a file, - from stdin. Other flags override its members.'
  return Flags.string({ description, helpValue: isText ? 'TEXT|@FILE' : 'JSON|@FILE' }) as Interfaces.Flag<unknown>
}

const WATCH_SECONDS = '2'

const watchFlag = Flags.integer({
  description: `Repeat every so many seconds, until Ctrl-C. Without a number: ${WATCH_SECONDS}.`,
  helpValue: 'SECONDS',
  min: 1,
  exclusive: ['jwt-file'],
}) as Interfaces.Flag<unknown>

const dryRunFlag = Flags.boolean({
  description: 'Let the controller judge the change, show who would gain or lose access, and change nothing.',
  exclusive: ['jwt-file', 'qr'],
}) as Interfaces.Flag<unknown>

const JWT_FLAGS: Interfaces.FlagInput = {
  'jwt-file': Flags.string({ description: 'Write the enrollment JWT to this file; - is stdout.', helpValue: 'FILE' }),
  force: Flags.boolean({ description: 'Let --jwt-file replace a file that is not the token of the same record.' }),
  qr: Flags.boolean({ description: 'Draw the enrollment JWT as a QR code on stderr.' }),
}

const LIST_FLAGS: Interfaces.FlagInput = {
  filter: Flags.string({ description: 'Filter in the query language; see: controller help filters.' }),
  sort: Flags.string({ description: 'Fields to sort by, such as: name desc, createdAt.' }),
  limit: Flags.integer({ description: 'Maximum number of records. Default: all.', min: 1 }),
  offset: Flags.integer({ description: 'Number of records to skip.', min: 0 }),
}

/** The values of flags that can be typed without one. */
function listOptionalValues({
  query = {},
}: OperationDescription): Required<Pick<CommandDescription, 'optionalValues'>> {
  const values = Object.entries(query).flatMap(([parameter, { schema }]) => {
    const value = schema['x-value-if-omitted']
    return typeof value === 'string' ? [[toQueryFlag(parameter), value]] : []
  })
  return { optionalValues: { ...Object.fromEntries(values), watch: WATCH_SECONDS } }
}

function makeQueryFlags({ query = {} }: OperationDescription): Interfaces.FlagInput {
  return Object.fromEntries(
    Object.entries(query).map(([parameter, { schema, isRequired = false, isMultiple = false }]) => {
      const listFlag = LIST_FLAGS[parameter]
      if (listFlag) return [parameter, listFlag]
      const common = { description: schema.description ?? '', required: isRequired }
      if (schema.type === 'boolean') return [toQueryFlag(parameter), Flags.boolean({ ...common, allowNo: true })]
      if (schema.type === 'integer') return [toQueryFlag(parameter), Flags.integer(common)]
      const options = schema.enum ? { options: schema.enum.map(String) } : {}
      const text = { ...common, ...options }
      return [
        toQueryFlag(parameter),
        isMultiple ? Flags.string({ ...text, multiple: true, multipleNonGreedy: true }) : Flags.string(text),
      ]
    }),
  ) as Interfaces.FlagInput
}
