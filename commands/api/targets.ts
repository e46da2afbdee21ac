// The records that a command works on: those that its arguments name, or all that a filter selects.
import { Flags, type Interfaces } from '@oclif/core'
import type { ResourceDescription } from '../../src/client/api-description.ts'
import { resolveId, toNoun } from '../client/names.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import type { CommandRun } from '../framework/connected.ts'
import { fillPath, listPathArguments, type PathArgument } from './arguments.ts'
import type { CommandTask } from './task.ts'

/** A record, by the parameters of the operation's path. */
export interface Target {
  readonly ids: Readonly<Record<string, string>>
  /** The record as the user names it; empty for an operation without arguments. */
  readonly label: string
}

/** The flags of commands that can change many records at once. */
export const bulkFlags: Interfaces.FlagInput = {
  filter: Flags.string({
    description: 'Instead of names: all records that the filter selects; see: controller help filters.',
    exclusive: ['all'],
  }),
  all: Flags.boolean({ description: 'Instead of names: all records.' }),
}

/**
 * The records that the command line names or selects.
 * @throws CommandError with exit code 2 if there are none, 5 if one does not exist
 */
export async function selectTargets(task: CommandTask, run: CommandRun): Promise<Target[]> {
  const { operation, api, isBulk } = task
  const pathArguments = listPathArguments(operation, api)
  if (!isBulk) return [await resolveArguments(pathArguments, run)]
  const [argument] = pathArguments as [PathArgument]
  const { words, flags, client } = run
  const isSelection = flags.all === true || flags.filter !== undefined
  if (isSelection && words.length > 0) throw makeUsageError(`--filter and --all take no names, such as ${words[0]}`)
  const resource = argument.resource as ResourceDescription
  const filter = flags.filter as string | undefined
  if (filter?.trim() === '')
    throw makeUsageError('--filter is empty', { field: 'filter', hint: '--all selects all records' })
  if (isSelection) return fetchSelection(argument, resource, filter, client)
  if (words.length === 0) throw makeUsageError(`missing argument: ${argument.argument.toUpperCase()}`)
  const targets: Target[] = []
  for (const label of words) {
    targets.push({ ids: { [argument.parameter]: await resolveId(client, resource, label, argument.list) }, label })
  }
  return targets
}

async function resolveArguments(pathArguments: readonly PathArgument[], { client, args }: CommandRun): Promise<Target> {
  const ids: Record<string, string> = {}
  for (const { parameter, argument, resource, list } of pathArguments) {
    const value = args[argument] ?? ''
    ids[parameter] = resource ? await resolveId(client, resource, value, fillPath(list, ids)) : value
  }
  return { ids, label: Object.values(args).find((word) => word !== undefined) ?? '' }
}

async function fetchSelection(
  { parameter, list }: PathArgument,
  resource: ResourceDescription,
  filter: string | undefined,
  client: CommandRun['client'],
): Promise<Target[]> {
  const query = filter === undefined ? '' : `&filter=${encodeURIComponent(filter)}`
  const targets: Target[] = []
  for await (const item of client.items(`${list}?limit=-1${query}`)) {
    const { id, name } = item as { id: string; name?: string }
    targets.push({ ids: { [parameter]: id }, label: name ?? id })
  }
  if (targets.length > 0) return targets
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${client.target}: no ${toNoun(resource.name)} is selected`, {
    hint: `controller ${resource.name} list`,
  })
}
