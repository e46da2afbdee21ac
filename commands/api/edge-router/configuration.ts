// Renders the configuration file of an edge router, as the router's program reads it.
import { isIP } from 'node:net'
import { splitAddress } from '../../../src/settings/setting-types.ts'

/** The ways in which a router tunnels: `host` connects services with servers that it reaches. */
export const TUNNEL_MODES = ['host'] as const

/** The contents of a configuration. */
export interface RouterConfiguration {
  readonly name: string
  /** The files that enrollment writes begin with this path. */
  readonly basePath: string
  /** The address of the controller, as its tokens state it: `tls:host:port`. */
  readonly controllerAddress: string
  /** The address at which clients and hosts reach the router. */
  readonly advertise: string
  /** The address that the router binds for them. */
  readonly listen: string
  /** The address at which other routers reach it; undefined if it accepts no links. */
  readonly linkAdvertise: string | undefined
  readonly tunnel: (typeof TUNNEL_MODES)[number] | undefined
}

/** The file as YAML; texts are quoted, because a path can contain any character. */
export function renderRouterConfiguration(configuration: RouterConfiguration): string {
  const { name, basePath, controllerAddress, advertise, listen, linkAdvertise, tunnel } = configuration
  const quote = (text: string) => JSON.stringify(text)
  return [
    `# The edge router ${JSON.stringify(name)}: ziti router enroll, then ziti router run.`,
    'v: 3',
    '',
    '# Enrollment writes these files.',
    'identity:',
    `  cert: ${quote(`${basePath}.cert`)}`,
    `  server_cert: ${quote(`${basePath}.server.cert`)}`,
    `  key: ${quote(`${basePath}.key`)}`,
    `  ca: ${quote(`${basePath}.cas`)}`,
    '',
    '# The controller. Once the router has enrolled, the address in the endpoints file takes precedence.',
    'ctrl:',
    `  endpoint: ${quote(controllerAddress)}`,
    `  endpointsFile: ${quote(`${basePath}.endpoints.yml`)}`,
    '',
    '# Clients and hosts connect to the advertised address. Its host is part of the certificate: enroll again after a change.',
    'listeners:',
    '  - binding: edge',
    `    address: ${quote(`tls:${listen}`)}`,
    '    options:',
    `      advertise: ${quote(advertise)}`,
    ...(tunnel === undefined ? [] : ['  - binding: tunnel', '    options:', `      mode: ${tunnel}`]),
    '',
    '# Links to other routers.',
    'link:',
    '  dialers:',
    '    - binding: transport',
    ...(linkAdvertise === undefined
      ? []
      : [
          '  listeners:',
          '    - binding: transport',
          `      bind: ${quote(`tls:${toBindAddress(linkAdvertise)}`)}`,
          `      advertise: ${quote(`tls:${linkAdvertise}`)}`,
        ]),
    '',
    '# How often the router reports API sessions, and the names in its certificate.',
    'edge:',
    '  heartbeatIntervalSeconds: 60',
    '  csr:',
    '    sans:',
    ...renderNames([advertise, ...(linkAdvertise === undefined ? [] : [linkAdvertise])]),
    '',
  ].join('\n')
}

/** All addresses of the machine, unless only this machine reaches the advertised one. */
export function toBindAddress(advertise: string): string {
  const { host, port } = splitAddress(advertise)
  return host === 'localhost' || host.startsWith('127.') ? advertise : `0.0.0.0:${port}`
}

function renderNames(addresses: readonly string[]): string[] {
  const hosts = [...new Set(addresses.map((address) => splitAddress(address).host))]
  const renderList = (kind: string, entries: readonly string[]) =>
    entries.length === 0 ? [] : [`      ${kind}: [${entries.map((entry) => JSON.stringify(entry)).join(', ')}]`]
  return [
    ...renderList(
      'dns',
      hosts.filter((host) => isIP(host) === 0),
    ),
    ...renderList(
      'ip',
      hosts.filter((host) => isIP(host) !== 0),
    ),
  ]
}
