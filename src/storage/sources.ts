// The source of a request, for limits that are fair between sources.
import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Context } from './transactions/context.ts'

/**
 * The source of a network address: for IPv6 its /64, the smallest block that a provider assigns to a customer. Clients behind
 * one NAT or proxy are one source.
 */
export function sourceFromAddress(address: string): string {
  if (!isIPv6(address)) return address
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString()
  const network = parsed.parts.slice(0, 4).map((group) => group.toString(16))
  return `${network.join(':')}::/64`
}

/** The source of a request: the identity if the caller is signed in, because others may share its address; else the address. */
export function sourceFromContext({ caller, origin }: Pick<Context, 'caller' | 'origin'>): string {
  return caller.kind === 'identity' ? `identity ${caller.identityId}` : sourceFromAddress(origin.address ?? caller.kind)
}
