// The cluster key of a directory, and the one that is to replace it: a controller takes that once the log is encrypted under it.
//
// The next key lies beside the current one at every controller before it is used, and never in the database: who read the former key reads
// nothing of what follows.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { Log } from '../../foundation/log.ts'
import { loadKey, writePrivateFile } from '../../pki/files.ts'
import { runAsOwner } from '../../settings/data-directory.ts'
import { CLUSTER_KEY_BYTES, computeKeyId, LogCipher } from '../postgres/log-cipher.ts'

/** Returns the cluster key in a file. @throws KeyFileError */
export function loadClusterKey(keyFile: string): Buffer {
  return loadKey(keyFile, CLUSTER_KEY_BYTES, 'copy cluster.key from the data directory of another controller')
}

/** The file of the next key, beside that of the current one. */
export function nameNextKey(keyFile: string): string {
  return `${keyFile}.next`
}

/** Removes a next key that is the current one already: a process was killed after it had written the one file, and before it removed the other. */
export function discardTakenKey(directory: string, keyFile: string): void {
  const nextKeyFile = nameNextKey(keyFile)
  if (!existsSync(nextKeyFile) || !existsSync(keyFile)) return
  if (readFileSync(nextKeyFile).equals(readFileSync(keyFile)))
    runAsOwner(directory, () => rmSync(nextKeyFile, { force: true }))
}

export interface ClusterKeyParts {
  /** The data directory. */
  readonly directory: string
  readonly keyFile: string
  readonly log: Log
}

export class ClusterKeys {
  /** Encrypts for the other controllers. */
  readonly cipher: LogCipher
  readonly #parts: ClusterKeyParts
  readonly #listeners: ((current: Buffer, former: Buffer) => void)[] = []
  #current: Buffer
  #former: Buffer | undefined

  /** @throws KeyFileError */
  constructor(parts: ClusterKeyParts) {
    this.#parts = parts
    discardTakenKey(parts.directory, parts.keyFile)
    this.#current = loadClusterKey(parts.keyFile)
    this.cipher = new LogCipher(this.#current)
    this.cipher.findNewerKey = (keyId) => this.#adopt(keyId)
  }

  get current(): Buffer {
    return this.#current
  }

  /** The newest first: the former one, while there may be commits under it to read. */
  list(): readonly Buffer[] {
    return this.#former ? [this.#current, this.#former] : [this.#current]
  }

  /** The id of the key that lies ready; undefined if none does. */
  get nextId(): string | undefined {
    const next = this.#readNext()
    return next && computeKeyId(next)
  }

  /** The listener must not throw. */
  onReplace(listener: (current: Buffer, former: Buffer) => void): void {
    this.#listeners.push(listener)
  }

  /** Encrypts under the next key from now on. @throws RangeError if there is none */
  useNext(): void {
    const next = this.#readNext()
    if (!next) throw new RangeError('there is no next cluster key')
    this.#replace(next)
    this.cipher.replaceKeys(...this.list())
  }

  /** Makes the key that was taken the one of the file, once nothing under the former one is to be read. */
  settle(): void {
    if (!this.#former) return
    const { directory, keyFile, log } = this.#parts
    try {
      runAsOwner(directory, () => {
        writePrivateFile(keyFile, this.#current)
        rmSync(nameNextKey(keyFile), { force: true })
      })
      this.#former = undefined
      this.cipher.replaceKeys(this.#current)
      log.info({ file: keyFile }, 'the cluster key was replaced')
    } catch (err) {
      log.warn({ err, file: keyFile }, 'the file of the cluster key cannot be written: put the next key in its place')
    }
  }

  #adopt(keyId: string): Buffer | undefined {
    const next = this.#readNext()
    if (!next || computeKeyId(next) !== keyId) return undefined
    this.#replace(next)
    return next
  }

  #replace(next: Buffer): void {
    if (next.equals(this.#current)) return
    const former = this.#current
    this.#former = former
    this.#current = next
    for (const listener of this.#listeners) listener(next, former)
  }

  #readNext(): Buffer | undefined {
    const file = nameNextKey(this.#parts.keyFile)
    try {
      const key = existsSync(file) ? readFileSync(file) : undefined
      return key?.length === CLUSTER_KEY_BYTES ? key : undefined
    } catch {
      return undefined
    }
  }
}
