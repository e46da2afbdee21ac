// What a backup says about itself: its first file.
import { invalidBackupError } from './backup-error.ts'

/** The name of the manifest, which is the first file of a backup. */
export const MANIFEST_NAME = 'backup.json'

const FORMAT = 'controller-backup'
const FORMAT_VERSION = 1

/** A file of a backup, by its path in the data directory. */
export interface BackupFile {
  readonly name: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

export interface Manifest {
  /** The version of the controller that made it. */
  readonly version: string
  /** RFC 3339. */
  readonly createdAt: string
  /** The migrations that its database has run, in order, each with the version of the controller that ran it. */
  readonly migrations: readonly { readonly name: string; readonly version: string }[]
  readonly files: readonly BackupFile[]
  /** The defects that its database had when it was made. */
  readonly findings: readonly string[]
}

export function renderManifest(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify({ format: FORMAT, formatVersion: FORMAT_VERSION, ...manifest }, null, 2)}\n`)
}

/** @throws BackupError if the text is not the manifest of a backup that this version can read */
export function parseManifest(file: string, text: string): Manifest {
  const manifest = parseJson(text)
  if (manifest?.format !== FORMAT || !Array.isArray(manifest.files)) throw invalidBackupError(file)
  if (manifest.formatVersion !== FORMAT_VERSION) throw invalidBackupError(file, String(manifest.version))
  return manifest as unknown as Manifest
}

function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

// Paths in a data directory that a backup may contain: never a path that leads out of it.
const FILE_NAMES =
  /^(?:config\.yaml|controller\.db|(?:token|audit|secrets)\.key|secrets\.key\.previous|pki\/[\w-]+(?:\.[\w-]+)*)$/

/** Whether a backup may contain a file of that name. */
export function isBackupFileName(name: string): boolean {
  return FILE_NAMES.test(name)
}
