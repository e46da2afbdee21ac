// What the command of an operation does: finds records by their names, builds the request, sends it, shows the answer.
import type { CommandRun } from '../connected.ts'
import { makeUsageError } from '../exit-codes.ts'
import { readJson, readText } from '../input.ts'
import { resolveId, resolveRole, toNoun } from '../names.ts'
import { isListed, splitPath } from '../naming.ts'
import { canPrompt } from '../prompts.ts'
import { fillPath, findReferencedResource, listPathArguments } from './arguments.ts'
import { type FlagValues, listMissingFlags, readBodyFromFlags, setAt } from './body.ts'
import { type BodyFlag, getAt } from './body-flags.ts'
import { fetchDeletionImpact, listLinkedRecords } from './impact.ts'
import { printList } from './listing.ts'
import { printResponse } from './present.ts'
import { type CommandTask, type PreparedRequest, toQueryFlag } from './task.ts'

export async function runTask(task: CommandTask, run: CommandRun): Promise<void> {
  const { operation } = task
  // What is wrong with the command line is said before anything is asked of the controller.
  const { body, assumed } = await readBody(task, run)
  const ids = await resolveArguments(task, run)
  const path = fillPath(operation.path, ids) + queryOf(task, run.flags)
  if (isListed(operation)) return printList(task, path, run)
  await resolveReferences(task, body, run)
  const prepared: PreparedRequest = { path, ids, body, assumed }
  if (operation.method === 'DELETE') await confirmDeletion(task, prepared, run)
  const headers: Record<string, string> = task.isText ? { 'content-type': operation.body?.contentTypes[0] ?? '' } : {}
  const answer = await run.client.call(operation.method, path, body, headers)
  await printResponse(task, prepared, answer, run)
}

// ---- the request -----------------------------------------------------------------------------------------------------

async function resolveArguments(
  { operation, api }: CommandTask,
  { client, args }: CommandRun,
): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const { parameter, argument, resource, list } of listPathArguments(operation, api)) {
    const given = args[argument] ?? ''
    ids[parameter] = resource ? await resolveId(client, resource, given, fillPath(list, ids)) : given
  }
  return ids
}

/** Parameters of the query string, without those by which a list is read in pieces. */
function queryOf({ operation }: CommandTask, flags: FlagValues): string {
  const query = new URLSearchParams()
  for (const parameter of Object.keys(operation.query ?? {})) {
    const given = flags[toQueryFlag(parameter)]
    if (given === undefined || parameter === 'limit' || parameter === 'offset') continue
    for (const value of [given].flat()) query.append(parameter, String(value))
  }
  return query.size > 0 ? `?${query}` : ''
}

async function readBody(
  task: CommandTask,
  { args, flags }: CommandRun,
): Promise<{ body: unknown; assumed: readonly string[] }> {
  const { operation, members, isText, isBatch, isNamedByArgument, takesData } = task
  const nothing = { body: undefined, assumed: [] }
  if (!operation.body) return nothing
  const data = takesData ? (flags.data as string | undefined) : undefined
  if (isText) {
    if (data === undefined) throw makeUsageError('--data is missing', { field: 'data' })
    return { body: await readText('data', data), assumed: [] }
  }
  const begun = data === undefined ? {} : await readJson('data', data)
  if (Array.isArray(begun)) return { body: begun, assumed: [] }
  if (typeof begun !== 'object' || begun === null) throw makeUsageError('--data is no JSON object', { field: 'data' })
  const isCreate = operation.method === 'POST' || operation.method === 'PUT'
  const offered = isCreate ? members : members.map((member) => ({ ...member, standard: undefined }))
  const given = withJwtWanted(task, flags)
  const named = isNamedByArgument && args.name !== undefined ? { ...given, name: args.name } : given
  const { body, assumed } = await readBodyFromFlags(offered, named, begun as Record<string, unknown>)
  assertComplete(task, body)
  if (Object.keys(body).length === 0 && !operation.body.isRequired) return nothing
  return { body: isBatch ? [body] : body, assumed }
}

function assertComplete({ operation, members, isNamedByArgument }: CommandTask, body: Record<string, unknown>): void {
  if (operation.method === 'PATCH' && Object.keys(body).length === 0) {
    throw makeUsageError('nothing to change: name at least one flag')
  }
  const missing = listMissingFlags(members, body).map((flag) =>
    isNamedByArgument && flag === '--name' ? 'NAME' : flag,
  )
  if (missing.length > 0)
    throw makeUsageError(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing`)
}

/** Asking for the JWT of a new record is asking for the enrollment it comes from. */
function withJwtWanted({ members }: CommandTask, flags: CommandRun['flags']): FlagValues {
  const wantsJwt = flags.output === 'jwt' || flags['jwt-file'] !== undefined || flags.qr === true
  const ways = members.filter(({ path }) => path[0] === 'enrollment' && path.length === 2)
  const isNamed = ways.some(({ flag }) => flags[flag] !== undefined)
  return wantsJwt && !isNamed && ways.some(({ flag }) => flag === 'ott') ? { ...flags, ott: true } : flags
}

/** Replaces names by ids in the members of a body that refer to other records, also inside `@…` roles. */
async function resolveReferences({ members, api }: CommandTask, body: unknown, { client }: CommandRun): Promise<void> {
  for (const record of [body].flat()) {
    if (typeof record !== 'object' || record === null) continue
    for (const member of members) {
      const resource = targetOf(member)
      const value = getAt(record, member.path)
      if (!resource || value === undefined || value === null || value === '') continue
      const resolve = (given: string) =>
        member.schema['x-roles'] ? resolveRole(client, resource, given) : resolveId(client, resource, given)
      const resolved = Array.isArray(value) ? await Promise.all(value.map(resolve)) : await resolve(String(value))
      setAt(record as Record<string, unknown>, member.path, resolved)
    }
  }

  function targetOf({ refersTo, path, schema }: BodyFlag) {
    if (refersTo) return api.resources[refersTo]
    return schema.enum ? undefined : findReferencedResource(path.at(-1) ?? '', api)
  }
}

// ---- deleting --------------------------------------------------------------------------------------------------------

async function confirmDeletion(task: CommandTask, { ids }: PreparedRequest, run: CommandRun): Promise<void> {
  if (run.flags.yes || !canPrompt()) return run.confirm('Delete?')
  const { operation, api } = task
  const [first] = listPathArguments(operation, api)
  const given = first ? run.args[first.argument] : undefined
  const resource = first?.resource
  const isWhole = resource !== undefined && splitPath(operation.path).length === 2
  if (isWhole) {
    const id = ids[first?.parameter ?? ''] ?? ''
    const links = await listLinkedRecords(run.client, resource, id, api)
    if (links.length > 0) run.notice(`${toNoun(resource.name)} ${given} is linked with ${links.join(', ')}.`)
    for (const line of await fetchDeletionImpact(run.client, resource, id, api)) run.notice(line)
    return run.confirm(`Delete the ${toNoun(resource.name)} ${given}?`)
  }
  await run.confirm(`${operation.summary.replace(/\.$/, '')}${given === undefined ? '' : ` (${given})`}?`)
}
