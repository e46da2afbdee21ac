// The events of the network: routers, links and circuits, as they are observed anyway.
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import type { NetworkEventType } from '../../definitions/resources/event-types.ts'
import { routers } from '../../definitions/resources/routers.ts'
import type { CircuitRequest } from '../../network/circuits/circuit-creation.ts'
import type { CircuitError } from '../../network/circuits/circuit-failures.ts'
import type { Circuit } from '../../network/circuits/circuit-table.ts'
import type { CircuitObserver, Circuits } from '../../network/circuits/circuits.ts'
import type { Link } from '../../network/links/link.ts'
import type { Links } from '../../network/links/links.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../../network/routers/connected-routers.ts'
import type { NetworkEvent } from './event.ts'
import type { EventFeed } from './event-feed.ts'

interface ObservedNetwork {
  readonly connected: ConnectedRouters
  readonly links: Links
  readonly circuits: Circuits
}

type Feed = Pick<EventFeed, 'isWatched' | 'add'>

/**
 * From now on the feed has the events of the network, as long as it is watched.
 * @param node the name of this controller among several: each observes its own routers, links and circuits
 */
export function feedNetworkEvents(
  events: EventFeed,
  { connected, links, circuits }: ObservedNetwork,
  node: string | undefined,
): void {
  const feed: Feed = {
    get isWatched() {
      return events.isWatched
    },
    add: (happened) =>
      events.add(node === undefined ? happened : { ...happened, details: { controller: node, ...happened.details } }),
  }
  connected.addObserver(observeRouters(feed, connected))
  circuits.addObserver(observeCircuits(feed))
  links.onUp((link) => {
    if (feed.isWatched) feed.add(describeLink('link-up', link))
  })
  links.onLost((link, reason) => {
    // It may still carry traffic; that its router is offline is an event of its own.
    if (feed.isWatched && reason !== 'unreachable') feed.add(describeLink('link-down', link, { reason }))
  })
}

function observeRouters(feed: Feed, connected: ConnectedRouters): RouterObserver {
  return {
    routerConnected(router) {
      if (feed.isWatched) feed.add(describeRouter('router-online', router))
    },
    routerDisconnected(router) {
      // One that has connected again already is online.
      if (feed.isWatched && !connected.get(router.id)) feed.add(describeRouter('router-offline', router))
    },
  }
}

function observeCircuits(feed: Feed): CircuitObserver {
  return {
    circuitBegun(circuit) {
      if (feed.isWatched) feed.add(describeCircuit('circuit-begun', circuit))
    },
    circuitFailed(request, error) {
      if (feed.isWatched) feed.add(describeFailure(request, error))
    },
    circuitEnded(circuit) {
      if (feed.isWatched) feed.add(describeCircuit('circuit-ended', circuit))
    },
  }
}

function describeRouter(type: NetworkEventType, { id, isEdge, hello }: ConnectedRouter): NetworkEvent {
  const { plural: resource } = isEdge ? edgeRouters : routers
  return { type, resource, id, related: [], details: { version: hello.version.version } }
}

function describeLink(type: NetworkEventType, link: Link, more: { readonly reason?: string } = {}): NetworkEvent {
  const { id, sourceId, destinationId, protocol } = link
  const details = { sourceId, destinationId, protocol, ...more }
  return { type, resource: 'links', id, related: [sourceId, destinationId], details }
}

function describeCircuit(type: NetworkEventType, circuit: Circuit): NetworkEvent {
  const { id, serviceId, clientId, hostId, terminatorId, path } = circuit
  const host = hostId === '' ? null : hostId
  return {
    type,
    resource: 'circuits',
    id,
    related: [serviceId, clientId, terminatorId, ...(host === null ? [] : [host]), ...path.routerIds],
    details: {
      ...{ serviceId, identityId: clientId, hostId: host, terminatorId, routerIds: path.routerIds },
      linkIds: path.links.map((link) => link.id),
    },
  }
}

function describeFailure({ service, clientId, routerId }: CircuitRequest, error: CircuitError): NetworkEvent {
  const { failureCause: cause, message: reason, circuitId = '' } = error
  return {
    type: 'circuit-failed',
    resource: 'circuits',
    id: circuitId,
    related: [service.id, clientId, routerId],
    details: { serviceId: service.id, identityId: clientId, routerId, cause, reason },
  }
}
