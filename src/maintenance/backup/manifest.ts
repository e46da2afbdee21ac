// The manifest of a backup: its first file, which describes it.
import { damagedError, invalidBackupError } from './backup-error.ts'
import type { BackupOwner } from './owner.ts'

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
  /** Absent in backups of older versions. */
  readonly owner?: BackupOwner
  /** The position of the last commit that it holds; absent in backups of older versions. */
  readonly position?: number
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
  if (manifest?.format !== FORMAT || !isVersion(manifest.version)) throw invalidBackupError(file)
  if (manifest.formatVersion !== FORMAT_VERSION) throw invalidBackupError(file, manifest.version)
  if (!isManifest(manifest)) throw damagedError(file, `its ${MANIFEST_NAME} is not valid`)
  return manifest
}

function isManifest(value: Record<string, unknown>): value is Record<string, unknown> & Manifest {
  const { createdAt, owner, position, migrations, files, findings } = value
  return (
    typeof createdAt === 'string' &&
    TIME.test(createdAt) &&
    (owner === undefined || isOwner(owner)) &&
    (position === undefined || Number.isSafeInteger(position)) &&
    isArrayOf(migrations, ({ name, version }) => typeof name === 'string' && isVersion(version)) &&
    isArrayOf(files, isBackupFile) &&
    files.some(({ name }) => name === 'controller.db') &&
    Array.isArray(findings) &&
    findings.every((finding) => typeof finding === 'string')
  )
}

/** Both are printed to terminals. */
function isOwner(value: unknown): value is BackupOwner {
  const { address, rootFingerprint } = (value ?? {}) as Record<string, unknown>
  const isAddress = typeof address === 'string' && /^[\w.:[\]-]{0,300}$/.test(address)
  return isAddress && typeof rootFingerprint === 'string' && /^[0-9a-f]{64}$/.test(rootFingerprint)
}

function isBackupFile({ name, bytes, sha256 }: Record<string, unknown>): boolean {
  return (
    typeof name === 'string' &&
    isBackupFileName(name) &&
    Number.isSafeInteger(bytes) &&
    (bytes as number) >= 0 &&
    typeof sha256 === 'string'
  )
}

function isArrayOf(
  value: unknown,
  isItem: (item: Record<string, unknown>) => boolean,
): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null && isItem(item))
}

/** Versions and times are printed to terminals, so that they must not hold control characters. */
function isVersion(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.+-]{1,100}$/.test(value)
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

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
