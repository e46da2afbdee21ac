// Atomic writes of private files: keys, certificates and settings.
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

const PRIVATE = 0o600

/**
 * Creates a directory, and its missing parents, with mode 0700. One after another: with `recursive`, Node.js never returns in a file system
 * that refuses new directories by ENOENT, as `/proc` does.
 */
export function createPrivateDirectory(path: string): void {
  if (isDirectory(path)) return
  if (!existsSync(dirname(path))) createPrivateDirectory(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!isDirectory(path)) throw error
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Writes a file with mode 0600; after a crash it has the old content or the new content, never a part. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  createPrivateDirectory(dirname(path))
  // Another process may write the same file. A random name and an exclusive open keep both writes intact, and no other
  // account can place a file or a link there first.
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    createFile(temporary, content)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncDirectory(dirname(path))
}

/** Whether a file name is that of a temporary file of `writePrivateFile`, which a crash can leave behind. */
export function isUnfinished(name: string): boolean {
  return /\.[0-9a-f]{12}\.new$/.test(name)
}

/** Creates an empty file with mode 0600, for a library that opens it by name; an existing file is not changed. */
export function ensurePrivateFile(path: string): void {
  if (existsSync(path)) return
  try {
    createFile(path, '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A key file is missing or damaged. The data that the key protects is not usable without it. */
export class KeyFileError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'KeyFileError'
  }
}

/**
 * Returns the key in a file. If there is no such file, creates it with `bytes` random bytes and mode 0600.
 * @throws KeyFileError if the file does not hold exactly `bytes` bytes
 */
export function loadOrCreateKey(path: string, bytes: number): Buffer {
  if (!existsSync(path)) replaceKey(path, bytes)
  return loadKey(path, bytes)
}

/** Writes a new random key of `bytes` bytes into a file, with mode 0600. */
export function replaceKey(path: string, bytes: number): void {
  writePrivateFile(path, randomBytes(bytes))
}

/**
 * Returns the key in a file.
 * @param remedy where the key can be had again
 * @throws KeyFileError if the file is missing, or does not hold exactly `bytes` bytes
 */
export function loadKey(
  path: string,
  bytes: number,
  remedy = 'restore it from the backup of the data directory',
): Buffer {
  if (!existsSync(path)) throw new KeyFileError(`${path} is missing: ${remedy}`)
  const key = readFileSync(path)
  if (key.length !== bytes) throw new KeyFileError(`${path} is damaged, because it must hold ${bytes} bytes: ${remedy}`)
  return key
}

function createFile(path: string, content: string | Uint8Array): void {
  const file = openSync(path, 'wx', PRIVATE)
  try {
    writeFileSync(file, content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Makes the names of files in a directory durable. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
