// The members of a listener: its address, the APIs that it serves there, and whether it uses TLS, which most of them require.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { suggestNearest } from '../foundation/nearest.ts'
import { ConfigError, readChoice, readHostAndPort, readList, readSwitch, splitAddress } from './setting-types.ts'

export type Api = 'client' | 'management' | 'fabric'

/**
 * The APIs that a listener may carry: those over HTTP, sign-in by OpenID Connect, the control channel of routers, and health and
 * metrics for monitoring.
 */
const listenerApis = ['client', 'management', 'fabric', 'oidc', 'control', 'health', 'metrics'] as const
export type ListenerApi = (typeof listenerApis)[number]

// Metrics are read without a session, so no listener carries them unless an operator says so.
export const defaultApis = listenerApis.filter((api) => api !== 'metrics')

// A listener without TLS may carry these alone: they take no credentials, and clients of the other APIs rely on certificates.
const apisWithoutTls: readonly ListenerApi[] = ['health', 'metrics']

/** The dialect of responses; see `server/api/dialects.ts`. */
export type Dialect = 'native' | 'openziti'

export interface ListenerConfig {
  /** `host:port` */
  readonly address: string
  readonly apis: readonly ListenerApi[]
  readonly dialect: Dialect
  /** Without TLS it serves plain HTTP, on a loopback address. */
  readonly tls: boolean
  /** Whether it is bound only while this controller has the routers that are connected to one controller at a time. */
  readonly shared: boolean
}

const LISTENER_MEMBERS: readonly string[] = [
  'address',
  'apis',
  'dialect',
  'tls',
  'shared',
] satisfies (keyof ListenerConfig)[]

/** @throws ConfigError */
export function readListeners(value: unknown, key: string): ListenerConfig[] {
  const listeners = readList(value, key, (address) => `{address: ${address}}`).map((entry) => {
    const record = (entry ?? {}) as Record<string, unknown>
    const unknown = Object.keys(record).find((member) => !LISTENER_MEMBERS.includes(member))
    if (unknown !== undefined) {
      const missing = LISTENER_MEMBERS.filter((member) => !Object.hasOwn(record, member))
      throw new ConfigError(key, `has a member that does not exist, ${unknown}${suggestNearest(unknown, missing)}`)
    }
    const { address, apis = defaultApis, dialect = 'native', tls = true, shared = false } = record
    return {
      address: readHostAndPort(address, key),
      apis: readList(apis, key).map((api) => readChoice(listenerApis, api, key)),
      dialect: readChoice(['native', 'openziti'] as const, dialect, key),
      tls: readSwitch(tls, key),
      shared: readSwitch(shared, key),
    }
  })
  const addresses = listeners.map(({ address }) => address)
  const duplicate = addresses.find((address, at) => splitAddress(address).port !== 0 && addresses.indexOf(address) < at)
  if (duplicate !== undefined)
    throw new ConfigError(key, `has the address ${duplicate} twice: name all its APIs in one entry`)
  for (const listener of listeners) if (!listener.tls) assertNeedsNoTls(listener, key)
  for (const { address, apis, shared } of listeners)
    if (shared && (apis.length !== 1 || apis[0] !== 'control'))
      throw new ConfigError(key, `must serve control alone at ${address}, because it is shared`)
  if (!listeners.some(({ tls }) => tls)) throw new ConfigError(key, 'must name at least one address with TLS')
  return listeners
}

function assertNeedsNoTls({ address, apis }: ListenerConfig, key: string): void {
  const secured = apis.find((api) => !apisWithoutTls.includes(api))
  if (secured)
    throw new ConfigError(key, `must not serve ${secured} without TLS at ${address}: only health and metrics`)
  const { host } = splitAddress(address)
  const isLoopback = host === 'localhost' || (isIP(host) !== 0 && ipaddr.parse(host).range() === 'loopback')
  if (!isLoopback) throw new ConfigError(key, `must not serve ${address} without TLS: it is not a loopback address`)
}
