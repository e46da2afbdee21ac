// The issuers of tokens that the controller trusts, composed: their keys, and the verification of their tokens.
import { OutboundClient } from '../../client/outbound-client.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import { readAuthoritiesFile } from '../../settings/authorities-file.ts'
import type { Config } from '../../settings/settings.ts'
import { KeyRefresher } from './key-refresher.ts'
import { Signers } from './signers.ts'
import { TokenVerifier } from './token-verifier.ts'

export interface ExternalSigners {
  /** Empty until the store starts it. */
  readonly directory: Signers
  readonly verifier: TokenVerifier
  readonly keyRefresher: KeyRefresher
  readonly outbound: OutboundClient
}

interface ExternalSignersParts {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
}

/** @throws ConfigError if `signers.caFile` cannot be read */
export function createExternalSigners({ config, clock, log }: ExternalSignersParts): ExternalSigners {
  const directory = new Signers()
  const outbound = new OutboundClient({
    settingPrefix: 'signers',
    allowHttp: config['signers.allowHttp'],
    // Identity providers are in private networks as a rule, and only administrators name them.
    allowPrivate: true,
    authorities: readAuthoritiesFile(config, 'signers.caFile'),
    timeoutMs: config['signers.timeout'],
  })
  const keyRefresher = new KeyRefresher({ directory, outbound, clock, log })
  return { directory, outbound, keyRefresher, verifier: new TokenVerifier({ directory, keyRefresher, clock }) }
}
