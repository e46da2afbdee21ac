// Runs the command of an operation: resolves names, builds the requests, sends them, and prints the responses.

import { resolveId, resolveRole } from '../client/names.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { assertOutput, readJson, readText } from '../foundation/flag-values.ts'
import { isListed, toTypedCommand } from '../foundation/naming.ts'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { fillPath, findReferencedResource } from './arguments.ts'
import { type FlagValues, listMissingFlags, readBodyFromFlags, setAt } from './body.ts'
import { type BodyFlag, getAt } from './body-flags.ts'
import { assertConfirmable, confirmRequests } from './confirmations.ts'
import { requestEnrollment } from './enrollment-request.ts'
import { printList } from './listing.ts'
import { buildOutcome, printOutcome, reserveJwtFile } from './present.ts'
import { assertBulkFlags, sendAll, sendRequest } from './send.ts'
import { computeSetChanges, hasSetChanges, listRemovedEntries, listReplacedSets } from './set-changes.ts'
import { selectTargets, type Target } from './targets.ts'
import { type CommandTask, type PreparedRequest, toQueryFlag } from './task.ts'
import { noteUnmatchedRoles } from './unmatched-roles.ts'
import { repeat } from './watch.ts'

/**
 * Runs the command. @throws CommandError if the command line is wrong, RequestError if the controller rejects the
 * request
 */
export async function runTask(task: CommandTask, typedRun: CommandRun): Promise<number | undefined> {
  const { operation, extension } = task
  const run = extension ? extension.complete(typedRun) : typedRun
  // Errors in the command line are reported before the first request.
  if (operation.returns.kind === 'raw') assertRawOutput(task, operation.returns.contentType, run)
  const { body, defaults } = await collectBody(task, run)
  assertConfirmable(task, run)
  const targets = await selectTargets(task, run)
  const query = await buildQueryString(task, run)
  if (isListed(operation)) {
    const path = fillPath(operation.path, targets[0]?.ids ?? {}) + query
    await repeat(run.flags.watch as number | undefined, () => printList(task, path, run))
    return undefined
  }
  await resolveReferences(task, body, run)
  const isSeveral = task.isBulk && run.words.length !== 1
  if (isSeveral) assertBulkFlags(run)
  const requests: PreparedRequest[] = []
  for (const target of targets) requests.push(await prepareRequest(task, target, { body, defaults, query }, run))
  if (isSeveral) {
    const exitCode = await sendAll(task, requests, run)
    await noteUnmatchedRoles(task, requests, run)
    return exitCode
  }
  const [request] = requests as [PreparedRequest]
  await confirmRequests(task, requests, run)
  // A file that cannot be written is reported before the request invalidates an older token.
  const jwtFile = await reserveJwtFile(task, request, run)
  const followUp = await extension?.prepare(run)
  try {
    await repeat(run.flags.watch as number | undefined, async () => {
      const response = await sendRequest(task, request, run)
      const outcome = await buildOutcome(task, request, response, run)
      await printOutcome(task, outcome, run, jwtFile)
      followUp?.finish(outcome.record)
    })
  } finally {
    jwtFile?.release()
    followUp?.release()
  }
  await noteUnmatchedRoles(task, requests, run)
  return undefined
}

/** Refuses output formats that a response cannot have which is printed unchanged. */
function assertRawOutput({ commandId }: CommandTask, contentType: string, { flags }: CommandRun): void {
  const [, ownFormat = ''] = contentType.split('/')
  assertOutput(flags.output, toTypedCommand(commandId), contentType, ['table', ownFormat])
}

// ---- the request -----------------------------------------------------------------------------------------------------

/** The request for one record, with the changes of single entries of its sets. */
async function prepareRequest(
  task: CommandTask,
  { ids, label }: Target,
  { body: common, defaults, query }: { body: unknown; defaults: readonly string[]; query: string },
  run: CommandRun,
): Promise<PreparedRequest> {
  const { operation, members, api } = task
  const recordPath = fillPath(operation.path, ids)
  const request = { path: recordPath + query, ids, label, defaults }
  const isChange = operation.method === 'PATCH' || operation.method === 'PUT'
  const isReadable = api.operations.some(({ method, path }) => method === 'GET' && path === operation.path)
  const replaced = isChange && isReadable ? listReplacedSets(members, common) : []
  const hasChanges = hasSetChanges(operation, members, run.flags)
  if (replaced.length === 0 && !hasChanges) return { ...request, body: common, removed: [] }
  const record = (await run.client.call('GET', recordPath)).data as OutputRecord
  const body = structuredClone(common ?? {}) as Record<string, unknown>
  const removed = listRemovedEntries(replaced, record, body)
  const resolve = (member: BodyFlag, entry: string) => resolveEntry(task, member, entry, run)
  for (const [member, value] of await computeSetChanges(operation, members, run.flags, record, resolve))
    setAt(body, member.path, value)
  return { ...request, body, removed }
}

/** The query string, without the parameters of paging. Parameters that refer to records take their names, too. */
async function buildQueryString({ operation, api }: CommandTask, { client, flags }: CommandRun): Promise<string> {
  const query = new URLSearchParams()
  for (const [parameter, { schema }] of Object.entries(operation.query ?? {})) {
    const flag = flags[toQueryFlag(parameter)]
    if (flag === undefined || parameter === 'limit' || parameter === 'offset') continue
    const resource = api.resources[String(schema['x-refers-to'])]
    for (const value of [flag].flat().map(String))
      query.append(parameter, resource ? await resolveId(client, resource, value) : value)
  }
  return query.size > 0 ? `?${query}` : ''
}

async function collectBody(
  task: CommandTask,
  run: CommandRun,
): Promise<{ body: unknown; defaults: readonly string[] }> {
  const { args, flags } = run
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
  const bodyFlags = isCreate ? await requestEnrollment(task, run) : flags
  const allFlags = isNamedByArgument && args.name !== undefined ? { ...bodyFlags, name: args.name } : bodyFlags
  const { body, defaults } = await readBodyFromFlags(applicableMembers, allFlags, initial as Record<string, unknown>)
  assertComplete(task, body, flags)
  if (Object.keys(body).length === 0 && !operation.body.isRequired) return emptyRequest
  return { body: isBatch ? [body] : body, defaults }
}

function assertComplete(
  { operation, members, isNamedByArgument }: CommandTask,
  body: Record<string, unknown>,
  flags: FlagValues,
): void {
  const isEmpty = Object.keys(body).length === 0 && !hasSetChanges(operation, members, flags)
  if (operation.method === 'PATCH' && isEmpty) throw makeUsageError('nothing to change: set at least one flag')
  const missing = listMissingFlags(members, body).map((flag) =>
    isNamedByArgument && flag === '--name' ? 'NAME' : flag,
  )
  if (missing.length > 0)
    throw makeUsageError(`missing ${missing[0] === 'NAME' ? 'argument' : 'flag'}: ${missing.join(' and ')}`)
}

/** Replaces names by ids in the members of a body that refer to other records, also in `@…` roles. */
async function resolveReferences(task: CommandTask, body: unknown, run: CommandRun): Promise<void> {
  for (const record of [body].flat()) {
    if (typeof record !== 'object' || record === null) continue
    for (const member of task.members) {
      const value = getAt(record, member.path)
      if (!findTarget(task, member) || value === undefined || value === null || value === '') continue
      const resolve = (nameOrId: unknown) => resolveEntry(task, member, String(nameOrId), run)
      const resolved = Array.isArray(value) ? await Promise.all(value.map(resolve)) : await resolve(value)
      setAt(record as Record<string, unknown>, member.path, resolved)
    }
  }
}

/** Replaces a name by an id in one value of a member that refers to other records; other values are returned unchanged. */
async function resolveEntry(
  task: CommandTask,
  member: BodyFlag,
  entry: string,
  { client }: CommandRun,
): Promise<string> {
  const resource = findTarget(task, member)
  if (!resource) return entry
  return member.schema['x-roles'] ? resolveRole(client, resource, entry) : resolveId(client, resource, entry)
}

function findTarget({ api }: CommandTask, { refersTo, path, schema }: BodyFlag) {
  if (refersTo) return api.resources[refersTo]
  return schema.enum ? undefined : findReferencedResource(path.at(-1) ?? '', api)
}
