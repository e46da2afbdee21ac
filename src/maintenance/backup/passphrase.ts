// Reads the passphrase of backups from its file.
import { readFileSync } from 'node:fs'
import { describeSystemError } from '../../foundation/system-errors.ts'
import { BackupError } from './backup-error.ts'

/** The first line of a file. @throws BackupError if it is empty or cannot be read */
export function readPassphrase(path: string): string {
  const remedy = 'write the passphrase into its first line'
  let passphrase: string | undefined
  try {
    passphrase = readFileSync(path, 'utf8').split(/\r?\n/, 1)[0]
  } catch (error) {
    throw new BackupError(
      'PASSPHRASE_REQUIRED',
      `the passphrase file ${path} cannot be read: ${describeSystemError(error)}`,
      remedy,
      error,
    )
  }
  if (passphrase) return passphrase
  throw new BackupError('PASSPHRASE_REQUIRED', `the passphrase file ${path} is empty`, remedy)
}
