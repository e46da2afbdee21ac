// The reasons for which a backup cannot be made, read or restored.

export class BackupError extends Error {
  /** For programs. */
  readonly code: BackupErrorCode
  readonly remedy: string

  constructor(code: BackupErrorCode, message: string, remedy: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'BackupError'
    this.code = code
    this.remedy = remedy
  }
}

export type BackupErrorCode =
  | 'NOT_A_BACKUP'
  | 'BACKUP_DAMAGED'
  | 'BACKUP_NEWER'
  | 'OTHER_NETWORK'
  | 'PASSPHRASE_REQUIRED'
  | 'WRONG_PASSPHRASE'
  | 'NOT_ENCRYPTED'
  | 'DISK_FULL'
  | 'BACKUP_FAILED'

export function damagedError(file: string, reason: string, cause?: unknown): BackupError {
  return new BackupError('BACKUP_DAMAGED', `${file} is damaged: ${reason}`, 'use another backup', cause)
}

// The codes of the system and of SQLite for a full disk.
const FULL_DISK_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL', 'SQLITE_IOERR_WRITE'])

/** Converts the error of a full disk; returns any other error unchanged. */
export function toBackupError(error: unknown, folder: string): unknown {
  const code = (error as NodeJS.ErrnoException).code
  if (!FULL_DISK_CODES.has(code ?? '')) return error
  const message = `there is not enough space in ${folder}, or its disk cannot be written`
  return new BackupError(
    'DISK_FULL',
    message,
    'make space there, and run the command again; nothing was changed',
    error,
  )
}

/** A passphrase proves nothing of a file that is not encrypted under it. */
export function notEncryptedError(file: string): BackupError {
  return new BackupError(
    'NOT_ENCRYPTED',
    `${file} is not encrypted, so that its passphrase does not prove who wrote it`,
    'if no one else can write to its folder, omit --passphrase-file',
  )
}

/** @param newerVersion the version of the controller that made it, if this one cannot read its form */
export function invalidBackupError(file: string, newerVersion?: string): BackupError {
  if (newerVersion === undefined) {
    return new BackupError(
      'NOT_A_BACKUP',
      `${file} is not a backup of a controller`,
      'name a file that `controller db backup` wrote',
    )
  }
  const message = `${file} was made by version ${newerVersion} of the controller, whose backups this version cannot read`
  return new BackupError('BACKUP_NEWER', message, `use version ${newerVersion} or later`)
}
