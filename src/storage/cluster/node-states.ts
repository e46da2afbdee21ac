// The controllers of a network as an operator sees them: which run, how far they have followed, and what each does for all.
import type { ClusterNode, ClusterNodes } from './nodes.ts'

/**
 * `waiting`: it waits until those of older releases have stopped, because it needs a newer schema. `live`: it runs. `draining`: it gives up what it does. `drained`: it has given it up. `silent`: it has not said that it ended, but is
 * in contact no more. `stopped`: it has ended.
 */
export const nodeStates = ['waiting', 'live', 'draining', 'drained', 'silent', 'stopped'] as const

/** A controller of the network, now. */
export interface NodeState extends Omit<ClusterNode, 'isLive' | 'hasProcess' | 'isDraining'> {
  readonly state: (typeof nodeStates)[number]
  /** How many commits it lacks. */
  readonly behind: number
}

/** The controllers of a cluster by their names, as they were at the last contact of this one with the log. */
export function listNodeStates(nodes: ClusterNodes): NodeState[] {
  return nodes.list().map(({ isLive, hasProcess, isDraining, ...node }) => {
    const silentMs = node.silentMs + nodes.ageMs
    const isInContact = isLive && silentMs < nodes.leaseMs
    // The row of one that runs is older than what it has applied since.
    const behind = isInContact ? (node.details.behind ?? 0) : Math.max(0, nodes.head - node.position)
    const work = node.duties.length + (node.details.routers ?? 0)
    const running = node.details.isWaiting ? 'waiting' : isDraining ? (work > 0 ? 'draining' : 'drained') : 'live'
    // One that is not in contact has lost its duties by then.
    const duties = isInContact ? node.duties : []
    return { ...node, duties, silentMs, behind, state: isInContact ? running : hasProcess ? 'silent' : 'stopped' }
  })
}
