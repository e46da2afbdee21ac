// The base paths of the APIs, and the older paths that clients still use.
import type { Api, ListenerApi } from '../../src/settings/listener-settings.ts'
import type { Config } from '../../src/settings/settings.ts'

export const BASE_PATHS: Readonly<Record<Api, string>> = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
}

/** By the name under which clients look for an API: the API that listeners carry, and its path. */
const ANNOUNCED: Readonly<Record<string, readonly [ListenerApi, path: string]>> = {
  'edge-client': ['client', BASE_PATHS.client],
  'edge-management': ['management', BASE_PATHS.management],
  'edge-oidc': ['oidc', '/oidc'],
  fabric: ['fabric', BASE_PATHS.fabric],
}

/** The paths of the APIs that any listener carries, by the name under which clients look for them. */
export function listApiPaths({ listeners }: Pick<Config, 'listeners'>): Record<string, string> {
  const isServed = (api: ListenerApi) => listeners.some(({ apis }) => apis.includes(api))
  return Object.fromEntries(
    Object.entries(ANNOUNCED).flatMap(([name, [api, path]]) => (isServed(api) ? [[name, path]] : [])),
  )
}

const LEGACY_CLIENT = '/edge/v1'

/** Paths that are served at the root; any other path at the root belongs to the client API without its base path. */
const AT_ROOT = new Set(['/', '/version', '/.well-known/est/cacerts'])
const OTHER_ROOTS = ['/edge', '/fabric', '/oidc', '/.well-known', '/health', '/health-checks', '/metrics', '/zac']

const PREFIXES = Object.values(BASE_PATHS).map((path) => `${path}/`)

/** The path that is really routed: without scheme and host, which clients of proxies send, and below a base path. */
export function rewriteUrl(requestTarget: string): string {
  // Nearly every request: the rest costs as much as finding its route.
  for (const prefix of PREFIXES) if (requestTarget.startsWith(prefix)) return requestTarget
  const url = requestTarget.startsWith('/') ? requestTarget : toOriginForm(requestTarget)
  const end = url.search(/[?#]/)
  const path = end === -1 ? url : url.slice(0, end)
  if (isBelow(path, LEGACY_CLIENT)) return BASE_PATHS.client + url.slice(LEGACY_CLIENT.length)
  if (AT_ROOT.has(path) || OTHER_ROOTS.some((root) => isBelow(path, root))) return url
  return BASE_PATHS.client + url
}

/** A request target in absolute form (RFC 9112, section 3.2.2) without its scheme and authority. */
function toOriginForm(requestTarget: string): string {
  const [prefix] = /^https?:\/\/[^/?#]*/i.exec(requestTarget) ?? ['']
  const rest = requestTarget.slice(prefix.length)
  return prefix === '' || rest.startsWith('/') ? rest : `/${rest}`
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/')
}
