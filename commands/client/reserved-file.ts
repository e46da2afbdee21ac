// A private file whose space on the disk is taken before its content exists, because a credential that is issued once must not
// be lost to a full disk or a missing permission. Every command writes secrets by it.
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncDirectory } from '../../src/pki/files.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError, describeWriteError } from '../foundation/file-errors.ts'

const PRIVATE = 0o600
// The rights of the owner and of the group. Rights of others are never kept.
const OWN_PERMISSIONS = 0o770
// More than a key with a long chain and the authorities of a network need.
const RESERVED_BYTES = 128 * 1024

/** The file that a path leads to. `status` is undefined if it does not exist. */
export interface FileTarget {
  /** Without symbolic links. */
  readonly path: string
  readonly status: Stats | undefined
}

const OTHER_FILE = 'name a file in a directory that exists, and that this account can write to'

/**
 * Finds the file that a path leads to.
 * @throws CommandError with exit code 2 if the path leads to something that is not a regular file, or its directory does not
 * exist
 */
export function findFileTarget(path: string): FileTarget {
  try {
    const status = statSync(path, { throwIfNoEntry: false })
    if (status && !status.isFile()) throw makeUsageError(`${path} is not a regular file`, { hint: OTHER_FILE })
    return { path: status ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path)), status }
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw makeUsageError(`${path} cannot be written: ${describeWriteError(error, path)}`, { hint: OTHER_FILE })
  }
}

/**
 * Opens a file, and passes its descriptor and itself as a target to `read`. What is read is the content of the file whose owner
 * and group `replaceFile` lets in, even if another account renames files meanwhile.
 * @throws CommandError with exit code 2 if it cannot be read, or is not a regular file
 */
export function readTarget<T>(path: string, read: (descriptor: number, target: FileTarget) => T): T {
  const descriptor = openToRead(path)
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) throw makeUsageError(`${path} is not a regular file`)
    return read(descriptor, { path: realpathSync(path), status })
  } finally {
    closeSync(descriptor)
  }
}

function openToRead(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throw makeUsageError(`${path} cannot be read: ${describeFileError(error, path)}`)
  }
}

export class ReservedFile {
  readonly #target: FileTarget
  readonly #temporaryPath: string
  readonly #descriptor: number
  readonly #remove = () => rmSync(this.#temporaryPath, { force: true })
  #isOpen = true

  private constructor(target: FileTarget, temporaryPath: string, descriptor: number) {
    this.#target = target
    this.#temporaryPath = temporaryPath
    this.#descriptor = descriptor
    process.on('exit', this.#remove)
  }

  /**
   * Creates a temporary file beside the target, with mode 0600 and the owner of this process, whatever file it replaces: another
   * account may have made that one, to read what replaces it.
   * @throws CommandError with exit code 1 if there is no space or no permission
   */
  static create(target: FileTarget): ReservedFile {
    const temporaryPath = `${target.path}.${randomBytes(6).toString('hex')}.new`
    let file: ReservedFile | undefined
    try {
      file = new ReservedFile(target, temporaryPath, openSync(temporaryPath, 'wx', PRIVATE))
      writeAll(file.#descriptor, Buffer.alloc(RESERVED_BYTES))
      fsyncSync(file.#descriptor)
      return file
    } catch (error) {
      file?.release()
      throw notWritableError(target.path, error)
    }
  }

  /**
   * Writes the content, and gives the file its name.
   * @param access the status of a file whose owner and group keep their access
   * @throws CommandError with exit code 1 if that fails
   */
  commit(content: string, access?: Stats): void {
    const { path } = this.#target
    try {
      const bytes = Buffer.from(content)
      writeAll(this.#descriptor, bytes)
      ftruncateSync(this.#descriptor, bytes.length)
      if (access) keepAccess(this.#descriptor, access)
      fsyncSync(this.#descriptor)
      renameSync(this.#temporaryPath, path)
      syncDirectory(dirname(path))
    } catch (error) {
      throw notWritableError(path, error)
    } finally {
      this.release()
    }
  }

  /** Removes the temporary file. Does nothing after `commit`. */
  release(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    process.off('exit', this.#remove)
    closeSync(this.#descriptor)
    this.#remove()
  }
}

/**
 * Replaces the content of a file at once. Owner and group keep their access, others lose it.
 * @param target a file whose content before already gave its owner what the new content gives
 */
export function replaceFile(target: FileTarget, content: string): void {
  ReservedFile.create(target).commit(content, target.status)
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, at)
}

/** The service that reads the file must still be able to read it if root replaces it. */
function keepAccess(descriptor: number, { uid, gid, mode }: Stats): void {
  if (process.geteuid?.() === 0) fchownSync(descriptor, uid, gid)
  fchmodSync(descriptor, mode & OWN_PERMISSIONS)
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

/** The error for a file that cannot be written, with what helps. */
export function notWritableError(path: string, error: unknown): CommandError {
  const message = `${path} cannot be written: ${describeWriteError(error, path)}`
  const isFull = FULL.has((error as NodeJS.ErrnoException).code ?? '')
  const hint = isFull ? 'free some space on the disk, or name a file on another one' : OTHER_FILE
  return new CommandError(EXIT.failed, 'NOT_WRITABLE', message, { hint })
}
