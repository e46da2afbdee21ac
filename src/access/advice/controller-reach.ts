// The controllers of a cluster that routers are connected to: one of them decides a dial, over the routers that it has.
import type { LiveNetwork } from '../live-network.ts'
import { type NamedRecord, toSentenceList } from './chain.ts'

/** The routers of a dial: those at which the client may be, and those that lead to the hosts. */
export interface DialRouters {
  readonly ofClient: readonly NamedRecord[]
  readonly ofHosts: readonly NamedRecord[]
}

/** How a dial ends for want of a controller that has both a router of the client and one of a host. */
export interface ControllerReach {
  /** `none`: every dial fails. `some`: those fail that certain controllers decide. */
  readonly gap: 'none' | 'some'
  /** One sentence, without a full stop. */
  readonly message: string
}

/** Returns what controllers lack; undefined if each that may decide a dial has the routers for it, or if there is one alone. */
export function findReachGap(
  network: LiveNetwork,
  { ofClient, ofHosts }: DialRouters,
  isEveryControllerAsked: boolean,
): ControllerReach | undefined {
  const deciding = listControllers(network, ofClient)
  const hosting = listControllers(network, ofHosts)
  if (deciding.length === 0 || hosting.length === 0) return undefined
  const lacking = deciding.filter((name) => !hosting.includes(name))
  if (lacking.length === 0 || (lacking.length < deciding.length && !isEveryControllerAsked)) return undefined
  const places = ofHosts.map((router) => describePlace(network, router))
  if (lacking.length === deciding.length) {
    const ofClients = ofClient.map((router) => describePlace(network, router))
    const message = `no controller has both: ${toSentenceList(ofClients)}, where the client connects; ${toSentenceList(places)}, where the host is`
    return { gap: 'none', message }
  }
  const message = `a dial that ${toSentenceList(lacking)} decides fails, because ${toSentenceList(places)} alone`
  return { gap: 'some', message }
}

function listControllers(network: LiveNetwork, routers: readonly NamedRecord[]): string[] {
  return [...new Set(routers.flatMap(({ id }) => network.listNodesOf(id)))].sort()
}

function describePlace(network: LiveNetwork, { id, name }: NamedRecord): string {
  return `${name} is connected to ${toSentenceList(network.listNodesOf(id))}`
}
