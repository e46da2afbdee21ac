// Lists what the identity of a session can dial and host, from the client API: no right of an administrator is required.
import type { Client } from '../client/client.ts'

/** A posture check that stands between the caller and a service. */
interface PostureQuery {
  readonly queryType: string
  readonly isPassing: boolean
  readonly process?: { readonly path?: string }
}

interface PostureQuerySet {
  readonly policyType: string
  readonly isPassing: boolean
  readonly postureQueries: readonly PostureQuery[]
}

interface ServiceRecord {
  readonly id: string
  readonly name: string
  readonly permissions: readonly AccessType[]
  readonly postureQueries: readonly PostureQuerySet[]
}

type AccessType = 'Dial' | 'Bind'

/** A service that policies grant, and what keeps the caller from using it now. */
export interface OwnAccess {
  readonly id: string
  readonly name: string
  /** The rights that policies grant. */
  readonly permissions: readonly AccessType[]
  /** The granted rights whose posture checks pass. */
  readonly allowed: readonly AccessType[]
  readonly edgeRouters: readonly { readonly name: string; readonly isOnline: boolean }[]
  /** Whether a host offers it. */
  readonly isHosted: boolean
  readonly missing: readonly string[]
}

// Each service takes two requests.
const MAX_AT_ONCE = 8

/** The services that policies grant to the caller, by name; with a filter, only those that it selects. */
export async function listOwnAccess(client: Client, filter?: string): Promise<OwnAccess[]> {
  const query = filter === undefined ? '' : `&filter=${encodeURIComponent(filter)}`
  const { data } = await client.call('GET', `/services?limit=-1${query}`)
  const services = (data as ServiceRecord[]).filter(({ permissions }) => permissions.length > 0)
  const result: OwnAccess[] = []
  for (let at = 0; at < services.length; at += MAX_AT_ONCE) {
    const some = services.slice(at, at + MAX_AT_ONCE)
    result.push(...(await Promise.all(some.map((service) => describeService(client, service)))))
  }
  return result.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function describeService(client: Client, service: ServiceRecord): Promise<OwnAccess> {
  const { id, name, permissions, postureQueries } = service
  const path = `/services/${encodeURIComponent(id)}`
  const { edgeRouters } = (await client.call('GET', `${path}/edge-routers`)).data as Pick<OwnAccess, 'edgeRouters'>
  const { data: terminators } = await client.call('GET', `${path}/terminators?limit=1`)
  const isHosted = (terminators as unknown[]).length > 0
  const allowed = permissions.filter((type) => ofType(postureQueries, type).some(({ isPassing }) => isPassing))
  const routers = edgeRouters.map(({ name: routerName, isOnline }) => ({ name: routerName, isOnline }))
  const missing = [
    ...permissions
      .filter((type) => !allowed.includes(type))
      .flatMap((type) => describeFailingChecks(type, ofType(postureQueries, type))),
    ...(routers.some(({ isOnline }) => isOnline) ? [] : [describeRouters(routers.length)]),
    ...(permissions.includes('Dial') && !isHosted ? ['no host offers it at the moment'] : []),
  ]
  return { id, name, permissions, allowed, edgeRouters: routers, isHosted, missing }
}

const ofType = (sets: readonly PostureQuerySet[], type: AccessType) =>
  sets.filter(({ policyType }) => policyType === type)

function describeRouters(count: number): string {
  return count === 0 ? 'no policy lets you use an edge router for it' : 'none of its edge routers is online'
}

/** The requirement of each type of check on the machine or the person. */
const REQUIREMENTS: Readonly<Record<string, string>> = {
  MFA: 'a code of your second factor in the session that connects',
  OS: 'an operating system that a policy allows',
  DOMAIN: 'a domain that a policy allows',
  MAC: 'a network address that a policy allows',
  PROCESS: 'a process that runs',
  PROCESS_MULTI: 'processes that run',
}

/** The checks of the set that lacks the fewest: one set that passes is enough. */
function describeFailingChecks(type: AccessType, sets: readonly PostureQuerySet[]): string[] {
  const failing = sets.map(({ postureQueries }) => postureQueries.filter(({ isPassing }) => !isPassing))
  const [nearest = []] = failing.sort((a, b) => a.length - b.length)
  const verb = type === 'Dial' ? 'dialing' : 'hosting'
  return nearest.map(({ queryType, process }) => {
    const path = process?.path === undefined ? '' : `: ${process.path}`
    return `${verb} requires ${REQUIREMENTS[queryType] ?? `the posture check ${queryType}`}${path}`
  })
}
