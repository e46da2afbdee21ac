// The addresses at which clients and routers reach a controller, and the hosts that its certificate names.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { splitAddress } from './setting-types.ts'
import type { Config } from './settings.ts'

/** The first address that clients use: `host:port`. */
export function getAdvertisedAddress(config: Config): string {
  return config.advertise[0] ?? config.listeners.find(({ tls }) => tls)?.address ?? ''
}

/** The addresses that clients use, each `host:port`. */
export function listAdvertisedAddresses(config: Config): readonly string[] {
  return config.advertise.length > 0 ? config.advertise : [getAdvertisedAddress(config)]
}

/** The address at which routers reach this controller, and no other one. */
export function getControlAddress(config: Config): string {
  return `tls:${config['control.advertise'] ?? getAdvertisedAddress(config)}`
}

/** The address at which routers find the network for the first time. */
export function getFirstControlAddress(config: Config): string {
  const shared = config['control.shared']
  return shared === undefined ? getControlAddress(config) : `tls:${shared}`
}

/** Whether routers reach this controller by an address of its own, and not only while it has those of `control.shared`. */
export function hasOwnControlListener({ listeners }: Config): boolean {
  return listeners.some(({ apis, shared }) => apis.includes('control') && !shared)
}

/** Every host that the server certificate must name. */
export function listCertificateHosts(config: Config): string[] {
  const withTls = config.listeners.filter(({ tls }) => tls)
  const forRouters = [config['control.advertise'], config['control.shared']].filter((one) => one !== undefined)
  const addresses = [...config.advertise, ...forRouters, ...withTls.map(({ address }) => address)]
  const hosts = addresses.map((address) => splitAddress(address).host).filter((host) => !isUnspecified(host))
  return [...new Set([...hosts, 'localhost', '127.0.0.1', '::1'])]
}

/** Whether an address stands for all of its machine: `0.0.0.0`. */
export function isUnspecified(host: string): boolean {
  return isIP(host) !== 0 && ipaddr.parse(host).range() === 'unspecified'
}
