// Where the clients of an edge router reach it, as the router describes it.
import type { EdgeDescription } from '../../src/routers/router-connection.ts'
import type { ClientHello } from './messages/edge_pb.ts'

/** Reads the listeners of an edge router; routers that name none give their protocols and ports in two lists. */
export function describeEdge({ hostname, listeners, protocols, protocolPorts }: ClientHello): EdgeDescription {
  const advertised = listeners.flatMap(({ advertise }) =>
    advertise ? [[advertise.protocol, toUrl(advertise.protocol, advertise.hostname, advertise.port)] as const] : [],
  )
  const listed = protocols.map(
    (protocol, at) => [protocol, toUrl(protocol, hostname, protocolPorts[at] ?? '')] as const,
  )
  return { hostname, supportedProtocols: Object.fromEntries(advertised.length > 0 ? advertised : listed) }
}

const toUrl = (protocol: string, host: string, port: number | string) => `${protocol}://${host}:${port}`
