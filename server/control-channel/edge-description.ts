// The addresses at which clients reach an edge router, as the router describes them.
import type { EdgeDescription } from '../../src/network/routers/router-connection.ts'
import { MalformedBodyError, requireAtMost } from './handlers/message-handler.ts'
import type { ClientHello } from './messages/edge_pb.ts'

// Every client is sent the description of each of its routers. A host name has at most 253 characters (RFC 1035, section 2.3.4).
const MAX_LISTENERS = 64
const MAX_WORD_LENGTH = 255

/**
 * Reads the listeners of an edge router; routers that name none give their protocols and ports in two lists.
 * @throws MalformedBodyError if there are more than a router has, or a word is longer than it can be
 */
export function describeEdge({ hostname, listeners, protocols, protocolPorts }: ClientHello): EdgeDescription {
  for (const list of [listeners, protocols, protocolPorts]) requireAtMost(MAX_LISTENERS, list, 'listeners')
  const words = listeners.flatMap(({ advertise }) => (advertise ? [advertise.protocol, advertise.hostname] : []))
  if ([hostname, ...protocols, ...protocolPorts, ...words].some(({ length }) => length > MAX_WORD_LENGTH))
    throw new MalformedBodyError('the description of an edge router has a word that is too long')
  const advertised = listeners.flatMap(({ advertise }) =>
    advertise ? [[advertise.protocol, toUrl(advertise.protocol, advertise.hostname, advertise.port)] as const] : [],
  )
  const listed = protocols.map(
    (protocol, at) => [protocol, toUrl(protocol, hostname, protocolPorts[at] ?? '')] as const,
  )
  return { hostname, supportedProtocols: Object.fromEntries(advertised.length > 0 ? advertised : listed) }
}

const toUrl = (protocol: string, host: string, port: number | string) => `${protocol}://${host}:${port}`
