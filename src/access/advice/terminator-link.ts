// The last link of a dial: the terminators of the service, and who hosts it.

import { identities } from '../../definitions/resources/identities.ts'
import { servicePolicies } from '../../definitions/resources/service-policies.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { findMatchingIdentities } from '../impact/affected-identities.ts'
import type { LiveSources } from '../live-state.ts'
import { type AdviceLink, type NamedRecord, type Remedy, toSentenceList } from './chain.ts'
import { findReachGap } from './controller-reach.ts'
import { describeEnrolling, hasEnrolled } from './enrolling.ts'
import { createPolicy, servicePolicyKind, toPlainName } from './remedies.ts'
import { sortByName } from './service-policy-links.ts'
import { type AdviceQuestion, findFreeRecordName, readRouters } from './subject.ts'

// More hosts are not named.
const MAX_HOSTS = 3

export async function terminatorLink(question: AdviceQuestion): Promise<AdviceLink> {
  const { access, service } = question
  const link = { link: 'terminator' } as const
  const rows = await readTerminators(question)
  if (rows.length === 0) return explainMissingTerminator(question)
  const judged = rows.map((row) => ({ row, ...judgeTerminator(row, access.live) }))
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
    const routers = judged.flatMap(({ row, health }) => (health === 'passing' ? [toRouter(row)] : []))
    const message = `${service.name} is hosted ${toSentenceList(healthy)}`
    return { ...link, outcome: 'passed', message, terminators, ...(await judgeReach(question, routers)) }
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

const toRouter = ({ routerId, routerName }: Terminator): NamedRecord => ({ id: routerId, name: routerName })

/** Judges whether a controller has both the routers of hosts and one that the client can be at. */
async function judgeReach(
  { access, context, identity, isEveryControllerAsked, service }: AdviceQuestion,
  ofHosts: readonly NamedRecord[],
): Promise<Partial<AdviceLink>> {
  const { network } = access.live
  const ofClient = await readRouters(context, access.index.compareRouters(identity, service.id).commonIds)
  const gap = findReachGap(network, { ofClient, ofHosts }, isEveryControllerAsked)
  if (!gap) return {}
  if (gap.gap === 'some') return { warning: gap.message, hint: REACH_HINT }
  return { outcome: 'failed', message: gap.message, hint: REACH_HINT }
}

const REACH_HINT =
  'controller router list shows the controllers of each router, and controller doctor those that one does not reach'

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
function judgeTerminator(
  { id, routerId, routerName, precedence, sessionId, liveSessionId }: Terminator,
  live: LiveSources,
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
export function describeAbsence({ network }: LiveSources, routerId: string): string {
  const since = network.getDisconnectTime(routerId)
  return since === undefined ? 'offline since the controller started' : `offline since ${toIsoTime(since)}`
}

/** Names the identities that could host the service and what they lack, else the policy or the role that is missing. */
async function explainMissingTerminator(question: AdviceQuestion): Promise<AdviceLink> {
  const { access, context, service, store } = question
  const link = { link: 'terminator', outcome: 'failed' } as const
  const policies = sortByName(access.index.findServicePoliciesOfService(service.id, 'Bind'))
  const hosts = await findMatchingIdentities(
    store,
    context,
    policies.map(({ subjects }) => subjects),
    MAX_HOSTS,
  )
  if (hosts.length > 0) {
    const names = toSentenceList(hosts.map(({ name }) => name))
    const message = `${service.name} has no terminator: ${names} may host it, and ${hosts.length === 1 ? 'does' : 'do'} not`
    return { ...link, message, ...(await explainIdleHosts(question, hosts)) }
  }
  const [policy] = policies
  if (policy) return { ...link, ...(await explainUnusedPolicy(question, policy)) }
  const name = await findFreeRecordName(context, servicePolicies, `${toPlainName(service)}-hosts`)
  const proposal = createPolicy(servicePolicyKind, name, [], [service], { type: 'Bind' })
  // The attribute is one that the administrator gives to the host.
  const next = { ...proposal, values: { ...proposal.values, identityRoles: [`#${name}`] } }
  const message = `${service.name} has no terminator, and no identity may host it`
  return { ...link, message, next: [next, await createHost(question, [name])] }
}

/** Explains the next step of the identities that may host the service: to enroll, or to run a program. */
async function explainIdleHosts(
  question: AdviceQuestion,
  hosts: readonly NamedRecord[],
): Promise<Pick<AdviceLink, 'hosts' | 'hint'>> {
  const namedHosts = hosts.map(({ id, name }) => ({ id, name }))
  const enrolledHosts: NamedRecord[] = []
  for (const host of namedHosts) if (await hasEnrolled(question, host)) enrolledHosts.push(host)
  const [enrolled] = enrolledHosts
  if (enrolled) {
    return {
      hosts: namedHosts,
      hint: `start the program of ${enrolled.name} that hosts ${question.service.name}: docs/routers.md`,
    }
  }
  const [host] = namedHosts as [NamedRecord]
  return { hosts: namedHosts, hint: await describeEnrolling(question, host) }
}

/** Says which roles a policy asks of hosts, and proposes an identity with them. */
async function explainUnusedPolicy(
  question: AdviceQuestion,
  { id, name, subjects }: IndexedPolicy,
): Promise<Pick<AdviceLink, 'message' | 'next'>> {
  const { service } = question
  const prefix = `${service.name} has no terminator`
  const attributes = [...subjects.attributes].sort()
  if (attributes.length === 0) {
    const role = toPlainName({ id, name })
    const adds = { identityRoles: [`#${role}`] }
    const addRole: Remedy = { operation: 'update', resource: 'service-policies', record: { id, name }, adds }
    const message = `${prefix}: ${name} lets identities host it, but names none that exists`
    return { message, next: [addRole, await createHost(question, [role])] }
  }
  const isEachRequired = subjects.semantic === 'AllOf' && attributes.length > 1
  const roles = attributes.map((attribute) => `#${attribute}`).join(isEachRequired ? ' and ' : ' or ')
  const lack = attributes.length === 1 ? 'that role' : isEachRequired ? 'these roles' : 'one of these roles'
  const message = `${prefix}: ${name} lets ${roles} host it, and no identity has ${lack}`
  return { message, next: [await createHost(question, isEachRequired ? attributes : attributes.slice(0, 1))] }
}

/** A new identity that enrolls with a token. */
async function createHost({ context, service }: AdviceQuestion, roleAttributes: readonly string[]): Promise<Remedy> {
  const name = await findFreeRecordName(context, identities, `${toPlainName(service)}-host`)
  const values = { name, type: 'Default', isAdmin: false, roleAttributes, enrollment: { ott: true } }
  return { operation: 'create', resource: 'identities', values }
}

function makeDefault(id: string): Remedy {
  return { operation: 'update', resource: 'terminators', record: { id }, values: { precedence: 'default' } }
}
