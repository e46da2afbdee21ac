// The last link of a dial: the terminators of the service, and who hosts it.
import { toIsoTime } from '../../clock.ts'
import { servicePolicies } from '../../resources/service-policies.ts'
import { findMatchingIdentities } from '../impact.ts'
import type { LiveState } from '../live-state.ts'
import { type Link, type Remedy, toSentenceList } from './chain.ts'
import { createPolicy, servicePolicyKind, toPlainName } from './remedies.ts'
import { type AdviceQuestion, findFreeName } from './subject.ts'

// More hosts are not named.
const MAX_HOSTS = 3

export async function terminatorLink(question: AdviceQuestion): Promise<Link> {
  const { access, service } = question
  const link = { link: 'terminator' } as const
  const rows = await readTerminators(question)
  if (rows.length === 0) return explainMissingTerminator(question)
  const judged = rows.map((row) => ({ row, ...judge(row, access.live) }))
  const terminators = judged.map(({ row, health }) => ({
    id: row.id,
    address: row.address,
    health,
    router: row.routerName,
    host: row.hostName,
  }))
  const places = (health: string) => judged.flatMap((one) => (one.health === health ? [describePlace(one.row)] : []))
  const healthy = places('passing')
  if (healthy.length > 0) {
    const message = `${service.name} is hosted ${toSentenceList(healthy)}`
    return { ...link, outcome: 'passed', message, terminators }
  }
  const unknown = places('unknown')
  if (unknown.length > 0) {
    const message = `it is unknown whether ${service.name} is hosted ${toSentenceList(unknown)}`
    return { ...link, outcome: 'unknown', message, terminators }
  }
  const failures = judged.map(({ row, reason }) => `${describePlace(row)} (${reason})`)
  const message = `no terminator of ${service.name} can be used: ${toSentenceList(failures)}`
  const marked = judged.find(({ reason }) => reason === MARKED)
  return { ...link, outcome: 'failed', message, terminators, ...(marked ? { remedy: makeDefault(marked.row.id) } : {}) }
}

type Terminator = Awaited<ReturnType<typeof readTerminators>>[number]

function readTerminators({ context: { db }, service }: AdviceQuestion) {
  return db
    .selectFrom('terminators as terminator')
    .innerJoin('routers as router', 'router.id', 'terminator.routerId')
    .leftJoin('sessions as session', 'session.id', 'terminator.sessionId')
    .leftJoin('identities as host', 'host.id', 'terminator.hostId')
    .select(['terminator.id', 'routerId', 'address', 'precedence', 'sessionId', 'session.id as liveSessionId'])
    .select(['router.name as routerName', 'host.name as hostName'])
    .where('terminator.serviceId', '=', service.id)
    .orderBy('terminator.id')
    .execute()
}

/** The address of an identity that hosts is an id of its router, which people do not know. */
function describePlace({ hostName, address, routerName }: Terminator): string {
  return `${hostName === null ? `at ${address}` : `by ${hostName}`} over ${routerName}`
}

const MARKED = 'marked as failed'

/** Nothing is reached behind a router that is not there. */
function judge(
  { id, routerId, routerName, precedence, sessionId, liveSessionId }: Terminator,
  live: LiveState,
): { readonly health: 'passing' | 'failing' | 'unknown'; readonly reason?: string } {
  const presence = live.network.getPresence(routerId)
  if (presence === 'offline') {
    return { health: 'failing', reason: `${routerName} is ${describeAbsence(live, routerId)}` }
  }
  if (precedence === 'failed') return { health: 'failing', reason: MARKED }
  if (sessionId !== '' && liveSessionId === null)
    return { health: 'failing', reason: 'its host may not host it any more' }
  const evidence = presence === 'unknown' ? 'unknown' : live.terminators.healthOf(id)
  return evidence === 'failing' ? { health: evidence, reason: 'its host does not respond' } : { health: evidence }
}

/** Since when a router is offline. */
export function describeAbsence({ network }: LiveState, routerId: string): string {
  const since = network.getDisconnectTime(routerId)
  return since === undefined ? 'offline since the controller started' : `offline since ${toIsoTime(since)}`
}

/** Names the identities that could host the service, else the policy that is missing for that. */
async function explainMissingTerminator(question: AdviceQuestion): Promise<Link> {
  const { access, context, service, store } = question
  const link = { link: 'terminator', outcome: 'failed' } as const
  const policies = access.index.findServicePoliciesOfService(service.id, 'Bind')
  const hosts = await findMatchingIdentities(
    store,
    context,
    policies.map(({ subjects }) => subjects),
    MAX_HOSTS,
  )
  if (hosts.length > 0) {
    const names = toSentenceList(hosts.map(({ name }) => name))
    const message = `${service.name} has no terminator: ${names} may host it, and ${hosts.length === 1 ? 'does' : 'do'} not`
    return { ...link, message, hosts: hosts.map(({ id, name }) => ({ id, name })) }
  }
  const name = await findFreeName(context, servicePolicies, `${toPlainName(service)}-hosts`)
  const policy = createPolicy(servicePolicyKind, name, [], [service], { type: 'Bind' })
  // The attribute is one that the administrator gives to the host.
  const next = { ...policy, values: { ...policy.values, identityRoles: [`#${name}`] } }
  const message = `${service.name} has no terminator, and no identity may host it`
  return { ...link, message, next: [next] }
}

function makeDefault(id: string): Remedy {
  return { operation: 'update', resource: 'terminators', record: { id }, values: { precedence: 'default' } }
}
