// The file of a setting with the certificates of private authorities, which the controller trusts besides the public ones.
import { readFileSync } from 'node:fs'
import { describeSystemError } from '../foundation/system-errors.ts'
import { parsePemBlocks } from '../pki/pem.ts'
import { invalidSettingError } from './config.ts'
import type { Config } from './settings.ts'

/** Returns the text of the file; undefined if the setting names none. @throws ConfigError if it cannot be read, or has no certificate */
export function readAuthoritiesFile(config: Config, key: 'signers.caFile' | 'webhooks.caFile'): string | undefined {
  const file = config[key]
  if (file === undefined) return undefined
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw invalidSettingError(config, key, `names ${file}, which cannot be read: ${describeSystemError(error)}`)
  }
  if (parsePemBlocks(text).every(({ label }) => label !== 'CERTIFICATE')) {
    throw invalidSettingError(config, key, `names ${file}, which has no certificate`)
  }
  return text
}
