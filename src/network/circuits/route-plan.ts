// Plans the routes of a circuit: where each router of the path sends data that comes from one side.

import type { Path } from '../links/path.ts'
import type { Forward } from '../routers/router-connection.ts'

/** The two ends of a circuit, as routers address them. */
export interface CircuitEnds {
  readonly ingressAddress: string
  readonly egressAddress: string
}

/** The part of one router. */
export interface RouterPart {
  readonly routerId: string
  readonly forwards: readonly Forward[]
  /** Whether the router reaches the terminator itself. */
  readonly isLast: boolean
}

/** Plans the parts of a path's routers, in order. Between two routers, data is addressed to the link that joins them. */
export function planRoutes(path: Path, { ingressAddress, egressAddress }: CircuitEnds): RouterPart[] {
  const last = path.routerIds.length - 1
  return path.routerIds.map((routerId, at) => {
    const clientSide = at === 0 ? toEnd(ingressAddress, 'client') : toLink(path, at - 1)
    const terminatorSide = at === last ? toEnd(egressAddress, 'terminator') : toLink(path, at)
    return {
      routerId,
      forwards: [
        { from: clientSide.address, to: terminatorSide.address, toKind: terminatorSide.kind },
        { from: terminatorSide.address, to: clientSide.address, toKind: clientSide.kind },
      ],
      isLast: at === last,
    }
  })
}

interface Side {
  readonly address: string
  readonly kind: Forward['toKind']
}

const toEnd = (address: string, kind: 'client' | 'terminator'): Side => ({ address, kind })

const toLink = (path: Path, at: number): Side => ({ address: path.links[at]!.id, kind: 'link' })
