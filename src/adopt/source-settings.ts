// The settings that follow from the configuration of OpenZiti's controller: where it listens, under which names, and for how long.
import { isIP } from 'node:net'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import type { ListenerApi } from '../settings/listener-settings.ts'
import { parseDuration, splitAddress } from '../settings/setting-types.ts'
import type { Overrides } from '../settings/settings.ts'
import type { AdoptionNotes } from './adoption-notes.ts'
import type { SourceConfiguration } from './source-configuration.ts'
import { SourceError } from './source-error.ts'

/** By the name that OpenZiti's configuration gives to an API: ours. */
const APIS: Readonly<Record<string, ListenerApi>> = {
  'edge-client': 'client',
  'edge-management': 'management',
  fabric: 'fabric',
  'edge-oidc': 'oidc',
  'health-checks': 'health',
}
const MIN_SESSION_MS = 60_000
const MIN_ENROLLMENT_MS = 5 * 60_000
// OpenZiti's controller accepts codes of two steps before and after.
const TOTP_WINDOW = 2

interface Listener {
  readonly address: string
  readonly apis: Set<ListenerApi>
}

/** @param hosts the names that the server certificates of the former controller have */
export function toSettings(
  configuration: SourceConfiguration,
  hosts: readonly string[],
  notes: AdoptionNotes,
): Overrides {
  const listeners: Listener[] = []
  const addresses: string[] = []
  for (const web of configuration.list('web')) {
    const apis = readApis(web, notes)
    for (const point of web.list('bindPoints')) {
      const address = point.text('address')
      if (address) addresses.push(address)
      if (point.has('identity'))
        notes.add('configuration', 'web', '', 'a bind point has an identity of its own: it is not used')
      // Routers that enroll later learn the first advertised address, so that routers are served there, too.
      addListener(listeners, toListenAddress(point.text('interface') ?? address), [...apis, 'control'])
    }
  }
  const holders = [configuration, ...configuration.list('web')].map((holder) => holder.part('identity'))
  if (holders.some((identity) => identity.list('alt_server_certs').length > 0)) {
    const problem = 'alt_server_certs are not used: browsers see the certificate of the network'
    notes.add('configuration', 'identity', '', problem)
  }
  const control = readControlAddresses(configuration)
  if (control.listen) addListener(listeners, toListenAddress(control.listen), ['control'])
  if (listeners.length === 0) {
    const remedy = "state the configuration of OpenZiti's controller"
    throw new SourceError('NO_LISTENERS', 'the configuration has no web listeners', remedy)
  }
  for (const host of hosts)
    if (host.includes('*'))
      notes.add(
        'certificates',
        'server',
        host,
        'the certificate of this controller has no wildcards: advertise the names that clients use',
      )
  const first = configuration.part('edge').part('api').text('address') ?? addresses[0]
  const advertise = listAdvertised(first, addresses, [...hosts, ...control.hosts])
  const edge = configuration.part('edge')
  const enrollment = edge.part('enrollment')
  const issuer = edge.part('totp').text('hostname')
  return {
    listeners: listeners.map(({ address, apis }) => ({ address, apis: [...apis], dialect: 'openziti' })),
    advertise,
    'totp.window': TOTP_WINDOW,
    ...(issuer ? { 'totp.issuer': issuer } : {}),
    ...toDuration('session.timeout', edge.part('api').text('sessionTimeout'), MIN_SESSION_MS),
    ...toDuration('enrollment.identity', enrollment.part('edgeIdentity').text('duration'), MIN_ENROLLMENT_MS),
    ...toDuration('enrollment.router', enrollment.part('edgeRouter').text('duration'), MIN_ENROLLMENT_MS),
  }
}

/** The address to listen on for routers, and the host that they know. */
function readControlAddresses(configuration: SourceConfiguration) {
  const control = configuration.part('ctrl')
  const withoutScheme = (address: string | undefined) => address?.replace(/^tls:/, '')
  const advertised = withoutScheme(control.part('options').text('advertiseAddress'))
  return {
    listen: withoutScheme(control.text('listener')),
    hosts: advertised === undefined ? [] : [splitAddress(advertised).host],
  }
}

function readApis(web: SourceConfiguration, notes: AdoptionNotes): ListenerApi[] {
  const bindings = web.list('apis').map((api) => api.text('binding') ?? '')
  for (const binding of bindings)
    if (!(binding in APIS)) notes.add('configuration', 'web', binding, `the API ${binding} is not served here`)
  const apis = bindings.flatMap((binding) => APIS[binding] ?? [])
  return apis.length > 0 ? [...new Set([...apis, 'health' as const])] : []
}

/** One port has one listener: that for all addresses, if one is for them. */
function addListener(listeners: Listener[], address: string, apis: readonly ListenerApi[]): void {
  const { host, port } = splitAddress(address)
  const same = listeners.find((each) => {
    const other = splitAddress(each.address)
    return other.port === port && (other.host === host || isUnspecified(other.host) || isUnspecified(host))
  })
  if (!same) {
    if (apis.length > 0) listeners.push({ address, apis: new Set(apis) })
    return
  }
  for (const api of apis) same.apis.add(api)
  if (isUnspecified(host)) listeners[listeners.indexOf(same)] = { address, apis: same.apis }
}

function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function toListenAddress(text: string | undefined): string {
  const address = text ?? ''
  if (!/:\d+$/.test(address)) {
    throw new SourceError(
      'NO_LISTENERS',
      `the configuration listens on "${address}", which is not an address with a port`,
      'correct the configuration',
    )
  }
  return address.startsWith(':') ? `0.0.0.0${address}` : address
}

/** The address that clients have, and every name of the server certificate: clients that know another one stay. */
function listAdvertised(first: string | undefined, addresses: readonly string[], hosts: readonly string[]): string[] {
  const all = first === undefined ? addresses : [first, ...addresses]
  const port = all[0] === undefined ? '' : splitAddress(all[0]).port
  const named = new Set(all.map((address) => splitAddress(address).host))
  // A certificate of this controller names hosts one by one.
  const others = hosts
    .filter((host) => !host.includes('*'))
    .map((host) => (isIP(host) ? ipaddr.parse(host).toString() : host))
  const further = others
    .filter((host) => !named.has(host))
    .map((host) => (isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`))
  return [...new Set([...all, ...further])]
}

function toDuration(key: string, text: string | undefined, leastMs: number): Overrides {
  const ms = text === undefined ? undefined : parseDuration(text)
  return ms === undefined ? {} : { [key]: `${Math.ceil(Math.max(ms, leastMs) / 1000)}s` }
}

/** The database of the controller: of one that is alone, or of a member of a cluster. */
export function findDatabase(configuration: SourceConfiguration): string {
  const cluster = configuration.part('cluster').path('dataDir')
  const path = cluster === undefined ? configuration.path('db') : join(cluster, 'ctrl-ha.db')
  if (path !== undefined) return path
  throw new SourceError(
    'NO_DATABASE',
    'the configuration names no database (db, or cluster.dataDir)',
    '--database FILE',
  )
}
