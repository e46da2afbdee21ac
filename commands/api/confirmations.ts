// Asks before a deletion, and before a change that ends access, opens or closes a gate, or drops a credential, and shows the impact
// first.
import type { OperationDescription } from '../../src/client/api-description.ts'
import { toNoun } from '../client/names.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { splitPath, toTypedCommand } from '../foundation/naming.ts'
import { RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import { canPrompt } from '../terminal/prompts.ts'
import { listPathArguments } from './arguments.ts'
import { getAt } from './body-flags.ts'
import { fetchDeletionImpact, fetchImpact, listLinkedRecords, renderImpact } from './impact.ts'
import type { CommandTask, PreparedRequest } from './task.ts'

/** The operations that drop a credential, by id, with what happens to it. */
const DROPPED_CREDENTIALS: Readonly<Record<string, string>> = {
  reEnrollAuthenticator: 'The authenticator is deleted at once: its identity cannot sign in with it any more.',
  reEnrollEdgeRouter: 'The certificate of the edge router is rejected at once, until it enrolls again.',
}

/** The members of a resource that decide on access. */
interface AccessMembers {
  /** A replacement that does not name them empties them. */
  readonly sets: readonly string[]
  /** The members whose change opens or closes a gate: which posture checks guard what others dial. */
  readonly gates: readonly string[]
  /** Every member of the resource does. */
  readonly isEachGate?: boolean
}

const ACCESS_MEMBERS: Readonly<Record<string, AccessMembers>> = {
  'posture-checks': { sets: ['roleAttributes'], gates: [], isEachGate: true },
  'service-policies': {
    sets: ['identityRoles', 'serviceRoles', 'postureCheckRoles'],
    gates: ['postureCheckRoles'],
  },
  'edge-router-policies': { sets: ['identityRoles', 'edgeRouterRoles'], gates: [] },
  'service-edge-router-policies': { sets: ['serviceRoles', 'edgeRouterRoles'], gates: [] },
  identities: { sets: ['roleAttributes'], gates: [] },
  services: { sets: ['roleAttributes'], gates: [] },
  'edge-routers': { sets: ['roleAttributes'], gates: [] },
}

const ROUTER_SWITCH: ClosingSwitches = {
  switches: ['disabled'],
  closesIf: true,
  notice: 'The router is disconnected at once, and carries nothing until it is enabled.',
}

interface ClosingSwitches {
  readonly switches: readonly string[]
  /** The value of a switch that is closed. */
  readonly closesIf: boolean
  readonly notice: string
}

/** By resource: the switches that disconnect routers or stop credentials from signing in, and which those are. */
const CLOSING_SWITCHES: Readonly<Record<string, ClosingSwitches>> = {
  'edge-routers': ROUTER_SWITCH,
  routers: ROUTER_SWITCH,
  'transit-routers': ROUTER_SWITCH,
  cas: {
    switches: ['isAuthEnabled'],
    closesIf: false,
    notice: 'Identities can no longer sign in with certificates of this authority.',
  },
  'external-jwt-signers': {
    switches: ['enabled'],
    closesIf: false,
    notice: 'Identities can no longer sign in with tokens of this signer.',
  },
  'auth-policies': {
    switches: ['primary.cert.allowed', 'primary.updb.allowed', 'primary.extJwt.allowed'],
    closesIf: false,
    notice: 'Identities with this auth policy can no longer sign in by that method.',
  },
}

// The impact of more records takes too long to compute, and is too long to read.
const MAX_SHOWN_IMPACTS = 10

/** Whether the command has a question, so that it has the flag `--yes`. */
export function canAsk(task: Pick<CommandTask, 'operation' | 'isBulk'>): boolean {
  const { operation, isBulk } = task
  return isBulk || alwaysAsks(operation) || canChangeAccess(operation) || findClosingSwitches(operation) !== undefined
}

/** The switches by which a change of the resource may disconnect it, or stop credentials from signing in. */
function findClosingSwitches({ method, path }: OperationDescription) {
  const [head = '', ...rest] = splitPath(path)
  return (method === 'PATCH' || method === 'PUT') && rest.join('/') === ':id' ? CLOSING_SWITCHES[head] : undefined
}

/** Whether the command asks whatever it changes. */
export function alwaysAsks({ method, id }: OperationDescription): boolean {
  return method === 'DELETE' || id in DROPPED_CREDENTIALS
}

function canChangeAccess({ method, path }: OperationDescription): boolean {
  const [head = '', ...rest] = splitPath(path)
  return (method === 'PATCH' || method === 'PUT') && rest.join('/') === ':id' && head in ACCESS_MEMBERS
}

/** @throws CommandError with exit code 2 if the command asks, and there is no terminal */
export function assertConfirmable({ operation, isBulk }: CommandTask, { flags, words }: CommandRun): void {
  if (flags.yes || flags['dry-run'] || canPrompt() || !alwaysAsks(operation)) return
  const isSelection = flags.all === true || flags.filter !== undefined
  // A command without any record reports that instead.
  if (isBulk && words.length === 0 && !isSelection) return
  const subject = words.length > 0 ? ` of ${words.join(', ')}` : ''
  throw makeUsageError(`cannot prompt for the confirmation${subject} without a terminal`, {
    hint: isSelection ? '--yes, or first --dry-run' : '--yes',
  })
}

/** Shows the impact of the requests, and asks, if they need it. @throws CommandError if the user declines */
export async function confirmRequests(
  task: CommandTask,
  requests: readonly PreparedRequest[],
  run: CommandRun,
): Promise<void> {
  if (run.flags.yes === true || run.flags['dry-run'] === true) return
  const { operation } = task
  const visible = requests.slice(0, MAX_SHOWN_IMPACTS)
  if (operation.method === 'DELETE') {
    for (const request of visible) await showDeletionImpact(task, request, run)
    if (requests.length > visible.length)
      run.notice(`The impact of ${requests.length - visible.length} more is not shown.`)
    return run.confirm(`${toDeletionText(task, requests)}?`)
  }
  const credential = DROPPED_CREDENTIALS[operation.id]
  if (credential) {
    run.notice(credential)
    return run.confirm(`${toActionText(task, requests)}?`)
  }
  const closing = findClosingSwitches(operation)
  const isClosed = ({ body }: PreparedRequest) =>
    closing?.switches.some((name) => getAt(body, name.split('.')) === closing.closesIf) === true
  if (closing && requests.some(isClosed)) {
    run.notice(closing.notice)
    return run.confirm(`Change ${toSubjectText(task, requests)}?`)
  }
  let hasImpact = false
  for (const request of visible) if (await showChangeImpact(task, request, run)) hasImpact = true
  // A change that takes no access away and leaves gates as they are is made at once.
  if (hasImpact) await run.confirm(`Change ${toSubjectText(task, requests)}?`)
}

/** Asks before a change of all records that a filter selects. @throws CommandError if the user declines */
export async function confirmSelection(
  task: CommandTask,
  requests: readonly PreparedRequest[],
  run: CommandRun,
): Promise<void> {
  if (run.flags.yes === true || run.flags['dry-run'] === true || alwaysAsks(task.operation)) return
  await run.confirm(`${toActionText(task, requests)}?`)
}

async function showDeletionImpact(task: CommandTask, { ids, label }: PreparedRequest, run: CommandRun): Promise<void> {
  const { operation, api } = task
  const [first] = listPathArguments(operation, api)
  if (!first?.resource || splitPath(operation.path).length !== 2) return
  const { resource, parameter } = first
  const id = ids[parameter] ?? ''
  const links = await listLinkedRecords(run.client, resource, id, api)
  if (links.length > 0) run.notice(`${toNoun(resource.name)} ${label} is linked with ${links.join(', ')}.`)
  for (const line of await fetchDeletionImpact(run.client, resource, id, api)) run.notice(line)
}

/** Shows who would gain or lose access. Returns false if no access would end, and no gate would change. */
async function showChangeImpact(task: CommandTask, { ids, body }: PreparedRequest, run: CommandRun): Promise<boolean> {
  const { operation, api } = task
  if (!canChangeAccess(operation)) return false
  const [first] = listPathArguments(operation, api)
  if (!first?.resource) return false
  const { plural } = first.resource
  const { sets, gates, isEachGate = false } = ACCESS_MEMBERS[plural] as AccessMembers
  const missing = Object.fromEntries(sets.map((name) => [name, []]))
  const changes = operation.method === 'PUT' ? { ...missing, ...(body as object) } : (body as object)
  const isGateChange = isEachGate || gates.some((name) => name in changes)
  if (!isGateChange && !['type', 'semantic', ...sets].some((name) => name in changes)) return false
  const change = { resource: plural, id: ids[first.parameter] ?? '', changes }
  const impact = await fetchImpact(run.client, change).catch(ignoreRefusal)
  if (!impact) return false
  const lines = renderImpact(impact)
  const { loses, unreachable, sessions } = impact
  const isAsked = isGateChange ? lines.length > 0 : loses.pairs + unreachable.pairs + sessions > 0
  if (isAsked) for (const line of lines) run.notice(line)
  return isAsked
}

/** Leaves it to the change itself to report what is wrong with it; a caller may also change what its policies do not show it. */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof RequestError && error.status < 500) return undefined
  throw error
}

/** `Delete the service web`, `Delete 3 services`, `Remove the second factor of an identity (laptop)`. */
function toDeletionText(task: CommandTask, requests: readonly PreparedRequest[]): string {
  const { operation } = task
  if (splitPath(operation.path).length === 2) return `Delete ${toSubjectText(task, requests)}`
  return toActionText(task, requests)
}

function toActionText(task: CommandTask, requests: readonly PreparedRequest[]): string {
  const { operation, commandId } = task
  const names = requests.length > 1 || task.isBulk ? toSubjectText(task, requests) : (requests[0]?.label ?? '')
  if (requests.length <= 1 && operation.method === 'DELETE') {
    return `${operation.summary.replace(/\.$/, '')}${names === '' ? '' : ` (${names})`}`
  }
  const [, verb = ''] = toTypedCommand(commandId).split(' ')
  return `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${names}`
}

/** `the service web`, or `3 services (mail, web, wiki)`. */
function toSubjectText({ operation, api }: CommandTask, requests: readonly PreparedRequest[]): string {
  const resource = listPathArguments(operation, api)[0]?.resource
  const [first] = requests
  if (requests.length === 1 && first) return `the ${toNoun(resource?.name ?? 'record')} ${first.label}`
  const names = requests.slice(0, 5).map(({ label }) => label)
  const more = requests.length > names.length ? ', …' : ''
  return `${requests.length} ${toNoun(resource?.plural ?? 'records')} (${names.join(', ')}${more})`
}
