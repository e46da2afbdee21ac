// Reads the files that settings name.
import { readFileSync } from 'node:fs'
import { describeSystemError } from '../foundation/system-errors.ts'
import { invalidSettingError } from './config.ts'
import type { Config } from './settings.ts'

type FileKey = 'cluster.caFile' | 'cluster.passwordFile' | 'signers.caFile' | 'webhooks.caFile'

/** Returns the text of the file; undefined if the setting names none. @throws ConfigError if it cannot be read */
export function readSettingFile(config: Config, key: FileKey): string | undefined {
  const file = config[key]
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw invalidSettingError(config, key, `names ${file}, which cannot be read: ${describeSystemError(error)}`)
  }
}
