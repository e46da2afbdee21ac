// A link between two routers, as the dialing one reports it, and what it costs.
import type { Instant } from '../../foundation/clock.ts'
import type { PathLink } from './path.ts'

/** The dialing router's report about a link. */
export interface LinkReport {
  readonly id: string
  readonly destinationId: string
  readonly protocol: string
  readonly dialAddress: string
  /** The attempt of the dialing router at this link: it grows when the link is made again. */
  readonly iteration: number
}

/** An administrator's settings of a link. */
export interface LinkSettings {
  /** Whether no path may use it. */
  readonly isDown: boolean
  readonly staticCost: number
}

export interface Link extends PathLink, LinkReport, LinkSettings {
  readonly reportedAt: Instant
  /** When its settings last changed; before that, when it was reported. */
  readonly changedAt: Instant
  /** `Pending` until it is old enough to be used; these are words that clients know. */
  readonly state: 'Pending' | 'Connected'
  /** The latency that the dialing router measures. */
  readonly sourceLatencyNs: number
  /** The latency that the other router measures. */
  readonly destinationLatencyNs: number
  /** The cost for a path: the static cost and both latencies in milliseconds. */
  readonly cost: number
}

export const DEFAULT_LINK_SETTINGS: LinkSettings = { isDown: false, staticCost: 1 }

/** The latency of a link until a router has measured it: paths avoid it as long as there are others. */
export const UNKNOWN_LATENCY_NS = 65_000_000_000

const NS_PER_MS = 1_000_000

/** The cost of a link for a path. */
export function computeLinkCost({
  staticCost,
  sourceLatencyNs,
  destinationLatencyNs,
}: Pick<Link, 'staticCost' | 'sourceLatencyNs' | 'destinationLatencyNs'>): number {
  return staticCost + Math.floor(sourceLatencyNs / NS_PER_MS) + Math.floor(destinationLatencyNs / NS_PER_MS)
}

/** By what the settings of a link are found: the same when its id changes, because the process of the dialing router ended. */
export interface LinkEnds {
  readonly sourceId: string
  readonly destinationId: string
  readonly protocol: string
  readonly dialAddress: string
}

/** The ends of a link as one text. */
export function toLinkKey({ sourceId, destinationId, protocol, dialAddress }: LinkEnds): string {
  return JSON.stringify([sourceId, destinationId, protocol, dialAddress])
}
