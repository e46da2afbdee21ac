// The issuers of tokens that the controller trusts, composed: their keys, and the verification of their tokens.
import { readFileSync } from 'node:fs'
import { OutboundClient } from '../../client/outbound-client.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import { type Config, invalidSettingError } from '../../settings/config.ts'
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
    allowHttp: config['signers.allowHttp'],
    authorities: readAuthorities(config),
    timeoutMs: config['signers.timeout'],
  })
  const keyRefresher = new KeyRefresher({ directory, outbound, clock, log })
  return { directory, outbound, keyRefresher, verifier: new TokenVerifier({ directory, keyRefresher, clock }) }
}

function readAuthorities(config: Config): string | undefined {
  const file = config['signers.caFile']
  if (file === undefined) return undefined
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw invalidSettingError(config, 'signers.caFile', `names a file that cannot be read: ${(error as Error).message}`)
  }
  if (parsePemBlocks(text).every(({ label }) => label !== 'CERTIFICATE')) {
    throw invalidSettingError(config, 'signers.caFile', `names ${file}, which has no certificate`)
  }
  return text
}
