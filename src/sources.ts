// Who a request comes from, for limits that are fair between sources.
import { isIPv6 } from 'node:net'
import type { Context } from './context.ts'

/**
 * The source of a network address: of IPv6 its /64, because that is what a provider gives to one customer at least.
 * Clients behind one NAT or proxy are one source.
 */
export function sourceFromAddress(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(bare)) return bare
  const [head = '', tail] = (bare.split('%')[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - groups.length - after.length }, () => '0')
  return `${[...groups, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}

/** The source of a request: the identity if the caller is signed in, because others may share its address; else the address. */
export function sourceFromContext({ caller, origin }: Pick<Context, 'caller' | 'origin'>): string {
  return caller.kind === 'identity' ? `identity ${caller.identityId}` : sourceFromAddress(origin.address ?? caller.kind)
}
