// The content of the configuration of OpenZiti's controller, stated one by one because the configuration itself is lost.
import { splitAddress } from '../settings/setting-types.ts'
import { SourceConfiguration } from './source-configuration.ts'

/** By name: a file, an address, or files. */
export interface SourceParts {
  readonly signingCert: string
  readonly signingKey: string
  /** The authorities above the signing certificate, and all others that clients and routers trust. */
  readonly ca: readonly string[]
  readonly serverCert: string
  readonly serverKey: string
  /** The certificate of the controller in its connections with routers, whose common name is its id. */
  readonly controlCert: string
  /** The address that clients have. */
  readonly address: string
  /** The address that routers have. */
  readonly controlAddress: string
  /** The address to listen on for clients; on all interfaces if it is absent. */
  readonly listen?: string
  /** The same for routers; on all interfaces if it is absent. */
  readonly controlListen?: string
}

/** By the path in a configuration: the flag that states the same. */
const FLAGS = {
  'edge.enrollment.signingCert.cert': '--signing-cert',
  'edge.enrollment.signingCert.key': '--signing-key',
  'identity.ca': '--ca',
  'identity.cert': '--control-cert',
  'identity.server_cert': '--server-cert',
  'identity.server_key': '--server-key',
}

const BINDINGS = ['edge-management', 'edge-client', 'fabric', 'edge-oidc', 'health-checks']

/** The configuration that a controller of these parts would have. */
export function toSourceConfiguration(parts: SourceParts): SourceConfiguration {
  const { address, controlAddress, listen = listenEverywhere(address) } = parts
  const { controlListen = listenEverywhere(controlAddress) } = parts
  const configuration = {
    identity: {
      cert: toFile(parts.controlCert),
      server_cert: toFile(parts.serverCert),
      server_key: toFile(parts.serverKey),
      ca: parts.ca.map(toFile),
    },
    ctrl: { listener: `tls:${controlListen}`, options: { advertiseAddress: `tls:${controlAddress}` } },
    edge: {
      api: { address },
      enrollment: { signingCert: { cert: toFile(parts.signingCert), key: toFile(parts.signingKey) } },
    },
    web: [{ bindPoints: [{ interface: listen, address }], apis: BINDINGS.map((binding) => ({ binding })) }],
  }
  return SourceConfiguration.fromParts(configuration, FLAGS)
}

/** A path may begin as the name of a token does. */
function toFile(path: string): string {
  return `file:${path}`
}

function listenEverywhere(address: string): string {
  return `0.0.0.0:${splitAddress(address).port}`
}
