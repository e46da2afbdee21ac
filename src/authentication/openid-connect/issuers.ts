// The issuer of a request: the address by which its client reaches the controller, if that is one of the controller's own.
//
// A client compares the issuer with the address that it knows, and a controller may have several.
import { isIPv6 } from 'node:net'
import { listCertificateHosts } from '../../settings/addresses.ts'
import { splitAddress } from '../../settings/setting-types.ts'
import type { Config } from '../../settings/settings.ts'

/** Below it all paths of OpenID Connect are found. */
export const OIDC_PATH = '/oidc'

const HTTPS_PORT = 443

export class Issuers {
  readonly #hosts: ReadonlySet<string>
  readonly #ports: ReadonlySet<number>

  constructor(config: Config) {
    const listeners = config.listeners.filter(({ tls }) => tls).map(({ address }) => address)
    this.#hosts = new Set(listCertificateHosts(config).map((host) => host.toLowerCase()))
    this.#ports = new Set([...config.advertise, ...listeners].map((address) => splitAddress(address).port))
  }

  /**
   * Returns the issuer for a request; undefined if its host is none of the controller's.
   * @param host the `Host` header
   * @param localPort the port of the connection, which the settings do not tell if the system chooses it
   */
  find(host: string | undefined, localPort: number | undefined): string | undefined {
    const [, name = '', port] = /^(\[[\da-f:.]+\]|[\da-z.-]+)(?::(\d{1,5}))?$/.exec((host ?? '').toLowerCase()) ?? []
    const bareName = name.replace(/^\[|\]$/g, '')
    const portNumber = Number(port ?? HTTPS_PORT)
    const isOwn = this.#hosts.has(bareName) && (this.#ports.has(portNumber) || portNumber === localPort)
    if (!isOwn) return undefined
    const authority = isIPv6(bareName) ? `[${bareName}]` : bareName
    return `https://${authority}${port === undefined ? '' : `:${port}`}${OIDC_PATH}`
  }
}
