// The file of a setting with the certificates of private authorities, which the controller trusts besides the public ones.
import { parsePemBlocks } from '../pki/pem.ts'
import { invalidSettingError } from './config.ts'
import { readSettingFile } from './setting-files.ts'
import type { Config } from './settings.ts'

/** Returns the text of the file; undefined if the setting names none. @throws ConfigError if it cannot be read, or has no certificate */
export function readAuthoritiesFile(config: Config, key: 'signers.caFile' | 'webhooks.caFile'): string | undefined {
  const text = readSettingFile(config, key)
  if (text !== undefined && parsePemBlocks(text).every(({ label }) => label !== 'CERTIFICATE')) {
    throw invalidSettingError(config, key, `names ${config[key]}, which has no certificate`)
  }
  return text
}
