// The hosts that a listener without TLS is asked by: a web page can have its own name lead to any address, also to this machine.
//
// Such a listener carries health and metrics only, on a loopback address.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { splitAddress } from '../../src/settings/setting-types.ts'
import type { Config } from '../../src/settings/settings.ts'

/** Returns the check of a `Host` header. Only probes of HTTP/1.0 send none, and never a browser. */
export function createHostCheck({ advertise, listeners }: Config): (host: string | undefined) => boolean {
  const configured = [...advertise, ...listeners.map(({ address }) => address)]
  const names = new Set(configured.map((address) => splitAddress(address).host.toLowerCase()))
  return (host) => {
    if (host === undefined) return true
    const name = parseName(host)
    return name !== undefined && (isLoopback(name) || names.has(name))
  }
}

/** The name or the address in a `Host` header, in lower case and without port; undefined if it is malformed. */
function parseName(host: string): string | undefined {
  const [, name = ''] = /^(\[[\da-fA-F:.]+\]|[^:@/?#[\]\s]+)(?::\d*)?$/.exec(host) ?? []
  return name === ''
    ? undefined
    : name
        .replace(/^\[(.*)\]$/, '$1')
        .replace(/\.$/, '')
        .toLowerCase()
}

function isLoopback(name: string): boolean {
  if (isIP(name) !== 0) return ipaddr.process(name).range() === 'loopback'
  return name === 'localhost' || name.endsWith('.localhost')
}
