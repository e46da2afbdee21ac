// The addresses that are not of the public network: those of this machine, of private networks, and reserved ones.
import { lookup as lookUp } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const privateAddresses = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  privateAddresses.addSubnet(address, prefix, 'ipv4')
for (const [address, prefix] of [
  // The first also has the addresses of IPv4 in other forms: compatible, mapped and translated ones.
  ['::', 32],
  ['64:ff9b::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 9],
  ['ff00::', 8],
] as const)
  privateAddresses.addSubnet(address, prefix, 'ipv6')

/** Whether a text is an address, and not a public one. An address of IPv6 may be in brackets, as in URLs. */
export function isPrivateAddress(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '')
  const family = isIP(address)
  return family !== 0 && privateAddresses.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Looks up a name, and finds its public addresses only. The connection is made to what it finds, so that no later lookup of the name
 * leads elsewhere.
 * @param makeError the error if the name has private addresses alone
 */
export function lookUpPublic(makeError: (name: string) => Error): LookupFunction {
  return (name, options, callback) => {
    lookUp(name, { ...options, all: true }, (error, addresses) => {
      const [first, ...others] = error ? [] : addresses.filter(({ address }) => !isPrivateAddress(address))
      if (error) callback(error, [])
      else if (!first) callback(makeError(name), [])
      else if (options.all) callback(null, [first, ...others])
      else callback(null, first.address, first.family)
    })
  }
}
