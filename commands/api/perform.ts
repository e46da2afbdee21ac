// What the command of an operation does: finds records by their names, builds the request, sends it, shows the answer.
import type { Run } from '../connected.ts'
import { usageError } from '../exit-codes.ts'
import { jsonFrom, textFrom } from '../input.ts'
import { resolveId, resolveRole, spoken } from '../names.ts'
import { isListed, segments } from '../naming.ts'
import { canAsk } from '../prompts.ts'
import { filledPath, pathArguments, referredBy } from './arguments.ts'
import { bodyFrom, type FlagValues, missingFlags, setAt } from './body.ts'
import { type BodyFlag, valueAt } from './body-flags.ts'
import { linkedWith, lostByDeleting } from './impact.ts'
import { showList } from './listing.ts'
import { queryFlag, type Task } from './operation-commands.ts'
import { showAnswer } from './present.ts'

/** A request that waits to be sent. */
export interface Prepared {
  readonly path: string
  /** The ids behind the path's parameters. */
  readonly ids: Readonly<Record<string, string>>
  readonly body: unknown
  /** What was filled in for the person, to be said. */
  readonly assumed: readonly string[]
}

export async function perform(task: Task, run: Run): Promise<void> {
  const { operation } = task
  // What is wrong with the command line is said before anything is asked of the controller.
  const { body, assumed } = await readBody(task, run)
  const ids = await resolveArguments(task, run)
  const path = filledPath(operation.path, ids) + queryOf(task, run.flags)
  if (isListed(operation)) return showList(task, path, run)
  await resolveReferences(task, body, run)
  const prepared: Prepared = { path, ids, body, assumed }
  if (operation.method === 'DELETE') await confirmDeletion(task, prepared, run)
  const headers: Record<string, string> = task.isText ? { 'content-type': operation.body?.contentTypes[0] ?? '' } : {}
  const answer = await run.client.call(operation.method, path, body, headers)
  await showAnswer(task, prepared, answer, run)
}

// ---- the request -----------------------------------------------------------------------------------------------------

async function resolveArguments({ operation, api }: Task, { client, args }: Run): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const { parameter, argument, resource, list } of pathArguments(operation, api)) {
    const given = args[argument] ?? ''
    ids[parameter] = resource ? await resolveId(client, resource, given, filledPath(list, ids)) : given
  }
  return ids
}

/** Parameters of the query string, without those by which a list is read in pieces. */
function queryOf({ operation }: Task, flags: FlagValues): string {
  const query = new URLSearchParams()
  for (const parameter of Object.keys(operation.query ?? {})) {
    const given = flags[queryFlag(parameter)]
    if (given === undefined || parameter === 'limit' || parameter === 'offset') continue
    for (const value of [given].flat()) query.append(parameter, String(value))
  }
  return query.size > 0 ? `?${query}` : ''
}

async function readBody(task: Task, { args, flags }: Run): Promise<{ body: unknown; assumed: readonly string[] }> {
  const { operation, members, isText, isBatch, isNamedByArgument, takesData } = task
  const nothing = { body: undefined, assumed: [] }
  if (!operation.body) return nothing
  const data = takesData ? (flags.data as string | undefined) : undefined
  if (isText) {
    if (data === undefined) throw usageError('--data is missing', { field: 'data' })
    return { body: await textFrom('data', data), assumed: [] }
  }
  const begun = data === undefined ? {} : await jsonFrom('data', data)
  if (Array.isArray(begun)) return { body: begun, assumed: [] }
  if (typeof begun !== 'object' || begun === null) throw usageError('--data is no JSON object', { field: 'data' })
  const isCreate = operation.method === 'POST' || operation.method === 'PUT'
  const offered = isCreate ? members : members.map((member) => ({ ...member, standard: undefined }))
  const given = withJwtWanted(task, flags)
  const named = isNamedByArgument && args.name !== undefined ? { ...given, name: args.name } : given
  const { body, assumed } = await bodyFrom(offered, named, begun as Record<string, unknown>)
  assertComplete(task, body)
  if (Object.keys(body).length === 0 && !operation.body.isRequired) return nothing
  return { body: isBatch ? [body] : body, assumed }
}

function assertComplete({ operation, members, isNamedByArgument }: Task, body: Record<string, unknown>): void {
  if (operation.method === 'PATCH' && Object.keys(body).length === 0) {
    throw usageError('nothing to change: name at least one flag')
  }
  const missing = missingFlags(members, body).map((flag) => (isNamedByArgument && flag === '--name' ? 'NAME' : flag))
  if (missing.length > 0) throw usageError(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing`)
}

/** Asking for the JWT of a new record is asking for the enrollment it comes from. */
function withJwtWanted({ members }: Task, flags: Run['flags']): FlagValues {
  const wantsJwt = flags.output === 'jwt' || flags['jwt-file'] !== undefined || flags.qr === true
  const ways = members.filter(({ path }) => path[0] === 'enrollment' && path.length === 2)
  const isNamed = ways.some(({ flag }) => flags[flag] !== undefined)
  return wantsJwt && !isNamed && ways.some(({ flag }) => flag === 'ott') ? { ...flags, ott: true } : flags
}

/** Replaces names by ids in the members of a body that refer to other records, also inside `@…` roles. */
async function resolveReferences({ members, api }: Task, body: unknown, { client }: Run): Promise<void> {
  for (const record of [body].flat()) {
    if (typeof record !== 'object' || record === null) continue
    for (const member of members) {
      const resource = targetOf(member)
      const value = valueAt(record, member.path)
      if (!resource || value === undefined || value === null || value === '') continue
      const resolve = (given: string) =>
        member.schema['x-roles'] ? resolveRole(client, resource, given) : resolveId(client, resource, given)
      const resolved = Array.isArray(value) ? await Promise.all(value.map(resolve)) : await resolve(String(value))
      setAt(record as Record<string, unknown>, member.path, resolved)
    }
  }

  function targetOf({ refersTo, path, schema }: BodyFlag) {
    if (refersTo) return api.resources[refersTo]
    return schema.enum ? undefined : referredBy(path.at(-1) ?? '', api)
  }
}

// ---- deleting --------------------------------------------------------------------------------------------------------

async function confirmDeletion(task: Task, { ids }: Prepared, run: Run): Promise<void> {
  if (run.flags.yes || !canAsk()) return run.confirm('Delete?')
  const { operation, api } = task
  const [first] = pathArguments(operation, api)
  const given = first ? run.args[first.argument] : undefined
  const resource = first?.resource
  const isWhole = resource !== undefined && segments(operation.path).length === 2
  if (isWhole) {
    const id = ids[first?.parameter ?? ''] ?? ''
    const links = await linkedWith(run.client, resource, id, api)
    if (links.length > 0) run.notice(`${spoken(resource.name)} ${given} is linked with ${links.join(', ')}.`)
    for (const line of await lostByDeleting(run.client, resource, id, api)) run.notice(line)
    return run.confirm(`Delete the ${spoken(resource.name)} ${given}?`)
  }
  await run.confirm(`${operation.summary.replace(/\.$/, '')}${given === undefined ? '' : ` (${given})`}?`)
}
