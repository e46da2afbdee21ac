// From the operations of the API to the commands that do them: one mechanism for all, those of resources included.
import { Flags, type Interfaces } from '@oclif/core'
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { optionalArgument } from '../arguments.ts'
import { type CommandClass, defineConnectedCommand } from '../connected.ts'
import { DONE_ELSEWHERE, hasAlternatePath, splitPath, toCommandId } from '../naming.ts'
import { listPathArguments, toOclifArguments } from './arguments.ts'
import { makeExample } from './examples.ts'
import { toOclifFlags } from './flag-definitions.ts'
import { runTask } from './perform.ts'
import { type CommandTask, makeTask, toQueryFlag } from './task.ts'

/**
 * A command for each operation, by its id. Each is made when it is looked up, because one start uses one of them.
 * @throws where two operations would have one name
 */
export function makeOperationCommands(api: ApiDescription): Record<string, CommandClass> {
  const commands: Record<string, CommandClass> = {}
  for (const operation of api.operations) {
    if (DONE_ELSEWHERE[operation.id] || hasAlternatePath(operation, api)) continue
    const id = toCommandId(operation, api)
    if (id in commands) throw new Error(`two operations would be the command ${id}; ${operation.id} is the second`)
    let made: CommandClass | undefined
    Object.defineProperty(commands, id, {
      enumerable: true,
      configurable: true,
      get: () => (made ??= makeOperationCommand(id, operation, api)),
    })
  }
  return commands
}

function makeOperationCommand(id: string, operation: OperationDescription, api: ApiDescription): CommandClass {
  const task = makeTask(operation, api)
  return defineConnectedCommand({
    summary: operation.summary,
    aliases: listAliasIds(id, operation, api),
    args: argumentsOf(task),
    flags: flagsOf(task),
    example: makeExample(operation, api),
    isPublic: operation.isPublic ?? false,
    run: (run) => runTask(task, run),
  })
}

/** The same verb under the other names of the noun: `identities list` for `identity list`. */
function listAliasIds(id: string, { path }: OperationDescription, { resources }: ApiDescription): string[] {
  const resource = resources[splitPath(path)[0] ?? '']
  const [noun = '', ...verb] = id.split(':')
  if (!resource || noun !== resource.name) return []
  const { plural, otherName } = resource
  const names = new Set([plural, ...(otherName ? [otherName.name, otherName.plural] : [])])
  names.delete(noun)
  return [...names].map((name) => [name, ...verb].join(':'))
}

function argumentsOf({ operation, api, isNamedByArgument }: CommandTask): Interfaces.ArgInput {
  const name = optionalArgument({ description: 'Name of the new record.' })
  return { ...toOclifArguments(listPathArguments(operation, api)), ...(isNamedByArgument ? { name } : {}) }
}

function flagsOf(task: CommandTask): Interfaces.FlagInput {
  const { operation, members, isNamedByArgument, takesData, isText, carriesJwt } = task
  const shown = isNamedByArgument ? members.filter(({ flag }) => flag !== 'name') : members
  return {
    ...toOclifFlags(shown),
    ...(takesData ? { data: dataFlag(isText) } : {}),
    ...queryFlags(operation),
    ...(carriesJwt ? jwtFlags : {}),
    ...(operation.method === 'DELETE' ? { yes: Flags.boolean({ char: 'y', description: 'Do not ask.' }) } : {}),
  }
}

function dataFlag(isText: boolean): Interfaces.Flag<unknown> {
  const description = isText
    ? '(required) The text that is sent; @FILE reads it from a file, - from stdin.'
    : 'The body as JSON; @FILE reads it from a file, - from stdin. Other flags win over it.'
  return Flags.string({ description, helpValue: isText ? 'TEXT|@FILE' : 'JSON|@FILE' }) as Interfaces.Flag<unknown>
}

const jwtFlags: Interfaces.FlagInput = {
  'jwt-file': Flags.string({ description: 'Write the enrollment JWT to this file; - is stdout.', helpValue: 'FILE' }),
  qr: Flags.boolean({ description: 'Draw the enrollment JWT as a QR code on stderr.' }),
}

const LIST_FLAGS: Interfaces.FlagInput = {
  filter: Flags.string({ description: 'Which records, in the query language: controller help filters.' }),
  sort: Flags.string({ description: 'By which fields, such as: name desc, createdAt.' }),
  limit: Flags.integer({ description: 'At most so many; all of them unless said otherwise.', min: 1 }),
  offset: Flags.integer({ description: 'How many to leave out first.', min: 0 }),
}

function queryFlags({ query = {} }: OperationDescription): Interfaces.FlagInput {
  return Object.fromEntries(
    Object.entries(query).map(([parameter, { schema, isRequired = false, isMultiple = false }]) => {
      const known = LIST_FLAGS[parameter]
      if (known) return [parameter, known]
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
