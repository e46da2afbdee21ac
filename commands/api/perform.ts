// Runs the command of an operation: resolves names, builds the request, sends it, and prints the response.
import type { CommandRun } from '../connected.ts'
import { makeUsageError } from '../exit-codes.ts'
import { readJson, readText } from '../input.ts'
import { resolveId, resolveRole, toNoun } from '../names.ts'
import { isListed, splitPath } from '../naming.ts'
import { canPrompt } from '../prompts.ts'
import { fillPath, findReferencedResource, listPathArguments } from './arguments.ts'
import { type FlagValues, listMissingFlags, readBodyFromFlags, setAt } from './body.ts'
import { type BodyFlag, getAt } from './body-flags.ts'
import { asksBeforeChange, fetchDeletionImpact, fetchImpact, listLinkedRecords, renderImpact } from './impact.ts'
import { printList } from './listing.ts'
import { printResponse } from './present.ts'
import { type CommandTask, type PreparedRequest, toQueryFlag } from './task.ts'

/**
 * Runs the command. @throws CommandError if the command line is wrong, RequestError if the controller rejects the
 * request
 */
/**
 * Runs the command. @throws CommandError if the command line is wrong, RequestError if the controller rejects the
 * request
 */
export async function runTask(task: CommandTask, run: CommandRun): Promise<void> {
  const { operation } = task
  // Errors in the command line are reported before the first request.
  const { body, defaults } = await collectBody(task, run)
  const ids = await resolveArguments(task, run)
  const path = fillPath(operation.path, ids) + toQueryString(task, run.flags)
  if (isListed(operation)) return printList(task, path, run)
  await resolveReferences(task, body, run)
  const prepared: PreparedRequest = { path, ids, body, defaults }
  if (operation.method === 'DELETE') await confirmDeletion(task, prepared, run)
  if (asksBeforeChange(operation) && run.flags.yes !== true) await confirmChange(task, prepared, run)
  const headers: Record<string, string> = task.isText ? { 'content-type': operation.body?.contentTypes[0] ?? '' } : {}
  const response = await run.client.call(operation.method, path, body, headers)
  await printResponse(task, prepared, response, run)
}

// ---- the request -----------------------------------------------------------------------------------------------------

async function resolveArguments(
  { operation, api }: CommandTask,
  { client, args }: CommandRun,
): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const { parameter, argument, resource, list } of listPathArguments(operation, api)) {
    const value = args[argument] ?? ''
    ids[parameter] = resource ? await resolveId(client, resource, value, fillPath(list, ids)) : value
  }
  return ids
}

/** The query string, without the parameters of paging. */
function toQueryString({ operation }: CommandTask, flags: FlagValues): string {
  const query = new URLSearchParams()
  for (const parameter of Object.keys(operation.query ?? {})) {
    const flag = flags[toQueryFlag(parameter)]
    if (flag === undefined || parameter === 'limit' || parameter === 'offset') continue
    for (const value of [flag].flat()) query.append(parameter, String(value))
  }
  return query.size > 0 ? `?${query}` : ''
}

async function collectBody(
  task: CommandTask,
  { args, flags }: CommandRun,
): Promise<{ body: unknown; defaults: readonly string[] }> {
  const { operation, members, isText, isBatch, isNamedByArgument, takesData } = task
  const emptyRequest = { body: undefined, defaults: [] }
  if (!operation.body) return emptyRequest
  const data = takesData ? (flags.data as string | undefined) : undefined
  if (isText) {
    if (data === undefined) throw makeUsageError('missing flag: --data', { field: 'data' })
    return { body: await readText('data', data), defaults: [] }
  }
  const initial = data === undefined ? {} : await readJson('data', data)
  if (Array.isArray(initial)) return { body: initial, defaults: [] }
  if (typeof initial !== 'object' || initial === null)
    throw makeUsageError('--data must be a JSON object', { field: 'data' })
  const isCreate = operation.method === 'POST' || operation.method === 'PUT'
  const applicableMembers = isCreate ? members : members.map((member) => ({ ...member, defaultValue: undefined }))
  const bodyFlags = withEnrollmentForJwt(task, flags)
  const allFlags = isNamedByArgument && args.name !== undefined ? { ...bodyFlags, name: args.name } : bodyFlags
  const { body, defaults } = await readBodyFromFlags(applicableMembers, allFlags, initial as Record<string, unknown>)
  assertComplete(task, body)
  if (Object.keys(body).length === 0 && !operation.body.isRequired) return emptyRequest
  return { body: isBatch ? [body] : body, defaults }
}

function assertComplete({ operation, members, isNamedByArgument }: CommandTask, body: Record<string, unknown>): void {
  if (operation.method === 'PATCH' && Object.keys(body).length === 0) {
    throw makeUsageError('nothing to change: set at least one flag')
  }
  const missing = listMissingFlags(members, body).map((flag) =>
    isNamedByArgument && flag === '--name' ? 'NAME' : flag,
  )
  if (missing.length > 0)
    throw makeUsageError(`missing ${missing[0] === 'NAME' ? 'argument' : 'flag'}: ${missing.join(' and ')}`)
}

/** Adds the flag of an enrollment if the JWT of the new record is requested, because it comes from the enrollment. */
function withEnrollmentForJwt({ members }: CommandTask, flags: CommandRun['flags']): FlagValues {
  const isJwtRequested = flags.output === 'jwt' || flags['jwt-file'] !== undefined || flags.qr === true
  const enrollmentMembers = members.filter(({ path }) => path[0] === 'enrollment' && path.length === 2)
  const isExplicit = enrollmentMembers.some(({ flag }) => flags[flag] !== undefined)
  return isJwtRequested && !isExplicit && enrollmentMembers.some(({ flag }) => flag === 'ott')
    ? { ...flags, ott: true }
    : flags
}

/** Replaces names by ids in the members of a body that refer to other records, also in `@…` roles. */
async function resolveReferences({ members, api }: CommandTask, body: unknown, { client }: CommandRun): Promise<void> {
  for (const record of [body].flat()) {
    if (typeof record !== 'object' || record === null) continue
    for (const member of members) {
      const resource = findTarget(member)
      const value = getAt(record, member.path)
      if (!resource || value === undefined || value === null || value === '') continue
      const resolve = (nameOrId: string) =>
        member.schema['x-roles'] ? resolveRole(client, resource, nameOrId) : resolveId(client, resource, nameOrId)
      const resolved = Array.isArray(value) ? await Promise.all(value.map(resolve)) : await resolve(String(value))
      setAt(record as Record<string, unknown>, member.path, resolved)
    }
  }

  function findTarget({ refersTo, path, schema }: BodyFlag) {
    if (refersTo) return api.resources[refersTo]
    return schema.enum ? undefined : findReferencedResource(path.at(-1) ?? '', api)
  }
}

// ---- deletion --------------------------------------------------------------------------------------------------------

async function confirmDeletion(task: CommandTask, { ids }: PreparedRequest, run: CommandRun): Promise<void> {
  if (run.flags.yes || !canPrompt()) return run.confirm('Delete?')
  const { operation, api } = task
  const [first] = listPathArguments(operation, api)
  const nameOrId = first ? run.args[first.argument] : undefined
  const resource = first?.resource
  const isRecord = resource !== undefined && splitPath(operation.path).length === 2
  if (isRecord) {
    const id = ids[first?.parameter ?? ''] ?? ''
    const links = await listLinkedRecords(run.client, resource, id, api)
    if (links.length > 0) run.notice(`${toNoun(resource.name)} ${nameOrId} is linked with ${links.join(', ')}.`)
    for (const line of await fetchDeletionImpact(run.client, resource, id, api)) run.notice(line)
    return run.confirm(`Delete the ${toNoun(resource.name)} ${nameOrId}?`)
  }
  await run.confirm(`${operation.summary.replace(/\.$/, '')}${nameOrId === undefined ? '' : ` (${nameOrId})`}?`)
}

// ---- change ----------------------------------------------------------------------------------------------------------

/** Shows who would gain or lose access, and asks; a change without an effect on access is made at once. */
async function confirmChange(task: CommandTask, { ids, body }: PreparedRequest, run: CommandRun): Promise<void> {
  const { operation, api } = task
  const [first] = listPathArguments(operation, api)
  if (!first?.resource) return
  // A replacement removes the role attributes that it does not name.
  const changes = operation.method === 'PUT' ? { roleAttributes: [], ...(body as object) } : body
  const change = { resource: first.resource.plural, id: ids[first.parameter] ?? '', changes }
  const lines = renderImpact(await fetchImpact(run.client, change))
  if (lines.length === 0) return
  for (const line of lines) run.notice(line)
  await run.confirm(`Change the ${toNoun(first.resource.name)} ${run.args[first.argument]}?`)
}
