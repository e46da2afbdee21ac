// The keys and certificates that every controller of a cluster has: rows of the log, of which each keeps files in its directory.
//
// A change is committed first, and then written to the directories of all, so that they have it in one order with everything else. The
// rows are encrypted under the cluster key: the database alone reveals none of them.
import { hkdfSync } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { sharedFiles } from '../../definitions/resources/shared-files.ts'
import { isUnfinished, KeyFileError, writePrivateFile } from '../../pki/files.ts'
import { runAsOwner } from '../../settings/data-directory.ts'
import type { Database } from '../database.ts'
import { type EntityStore, newEntity } from '../entities/entities.ts'
import { SECRETS_KEY_BYTES, SecretCipher, SecretError } from '../secrets/secret-cipher.ts'
import { openForReading, openForWriting } from '../sqlite/connection.ts'
import type { Commit } from '../transactions/changes.ts'
import type { WriteContext } from '../transactions/context.ts'
import type { DerivedRows } from '../transactions/projection.ts'

/** Contents by the paths of files below the data directory; undefined for one that is removed. */
export type FileContents = ReadonlyMap<string, Uint8Array | string | undefined>

const PREVIOUS_SECRETS_KEY = 'secrets.key.previous'
const KEY_FILES = ['token.key', 'audit.key', 'secrets.key', PREVIOUS_SECRETS_KEY] as const
const PKI = 'pki'
const LIST_ROWS = 'select name, "sealedContent" from shared_files'
const PERMITTED = /^(?:(?:token|audit|secrets)\.key|secrets\.key\.previous|pki\/[a-z-]+(?:\.(?:crt|key))?)$/

/** The change at the end of a rotation of the key of secrets. */
export const ROTATION_END: FileContents = new Map([[PREVIOUS_SECRETS_KEY, undefined]])

interface SharedRow {
  readonly name: string
  readonly sealedContent: string
}

export class SharedFiles implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'shared files'
  readonly #directory: string
  #cipher: SecretCipher
  readonly #rowListeners: (() => void)[] = []
  readonly #listeners = new Set<(names: readonly string[]) => void>()

  constructor(directory: string, clusterKey: Buffer) {
    this.#directory = directory
    this.#cipher = new SecretCipher(deriveKey(clusterKey))
  }

  /** Encrypts under another cluster key from now on. The former one decrypts what is still encrypted under it. */
  replaceKey(clusterKey: Buffer, former: Buffer): void {
    this.#cipher = new SecretCipher(deriveKey(clusterKey), deriveKey(former))
  }

  /** Has the transaction encrypt every row under the current cluster key. */
  async encryptAgain(entities: EntityStore, tx: WriteContext): Promise<void> {
    const rows = await tx.db.selectFrom('shared_files').select(['name', 'sealedContent']).execute()
    await this.store(
      entities,
      tx,
      new Map(rows.map(({ name, sealedContent }) => [name, this.#open(name, sealedContent)])),
    )
  }

  /** Calls `listener` once rows have changed, before their files are written. */
  onRows(listener: () => void): void {
    this.#rowListeners.push(listener)
  }

  /** Calls `listener` with the names of files that have another content now. */
  onChange(listener: (names: readonly string[]) => void): void {
    this.#listeners.add(listener)
  }

  /** Writes what differs in the directory. It may keep what the others lack, such as the key of the root. */
  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await readRows(db)
    const isRotating = rows.length === 0 || rows.some(({ name }) => name === PREVIOUS_SECRETS_KEY)
    this.#write(rows, isRotating ? [] : [PREVIOUS_SECRETS_KEY])
  }

  async findDifferences(db: Kysely<Database>): Promise<readonly string[]> {
    return this.#listDifferent(await readRows(db)).map(({ name }) => `${name} is not what the controllers share`)
  }

  apply({ changes }: Commit): void {
    const last = new Map<string, SharedRow | undefined>()
    for (const { resource, before, after } of changes) {
      if (resource !== sharedFiles.plural) continue
      last.set(((after ?? before) as unknown as SharedRow).name, after as unknown as SharedRow | undefined)
    }
    if (last.size === 0) return
    for (const listener of this.#rowListeners) listener()
    const removed = [...last].flatMap(([name, row]) => (row ? [] : [name]))
    this.#write(
      [...last.values()].filter((row) => row !== undefined),
      removed,
    )
  }

  /** Has the transaction change files. They are written once it is committed. */
  async store(entities: EntityStore, tx: WriteContext, contents: FileContents): Promise<void> {
    const rows = await tx.db.selectFrom('shared_files').select(['id', 'name']).execute()
    const replaced = rows.filter(({ name }) => contents.has(name))
    await entities.removeAllIn(
      tx,
      sharedFiles,
      replaced.map(({ id }) => id),
    )
    for (const [name, content] of contents) {
      requirePermitted(name)
      if (content === undefined) continue
      const sealedContent = this.#seal(name, content)
      await entities.insert(tx, sharedFiles, newEntity(tx, sharedFiles, { name, sealedContent }))
    }
  }

  /** Writes the files that a database has rows of, before anything opens it. */
  restore(databaseFile: string): void {
    const connection = openForReading(databaseFile)
    try {
      this.#write(connection.prepare(LIST_ROWS).all() as SharedRow[], [])
    } finally {
      connection.close()
    }
  }

  /**
   * Encrypts those rows of a database under this cluster key that are under a former one, by the files of the directory, which are as old as
   * the rows. No process has the database open.
   * @throws KeyFileError if such a file is missing
   */
  replaceUnreadable(databaseFile: string): void {
    const connection = openForWriting(databaseFile)
    try {
      const update = connection.prepare('update shared_files set "sealedContent" = ? where name = ?')
      for (const { name, sealedContent } of connection.prepare(LIST_ROWS).all() as SharedRow[]) {
        if (this.#isReadable(name, sealedContent)) continue
        if (!existsSync(this.#path(name))) throw new KeyFileError(`the shared file ${name} is missing`)
        update.run(this.#seal(name, readFileSync(this.#path(name))), name)
      }
    } finally {
      connection.close()
    }
  }

  /** The files of the directory that controllers share. */
  read(): FileContents {
    const pki = readdirSync(this.#path(PKI)).filter((name) => !isUnfinished(name))
    const names = [...KEY_FILES, ...pki.map((name) => `${PKI}/${name}`)].filter((name) => PERMITTED.test(name))
    const existing = names.filter((name) => existsSync(this.#path(name)))
    return new Map(existing.map((name) => [name, readFileSync(this.#path(name))]))
  }

  #write(rows: readonly SharedRow[], removed: readonly string[]): void {
    const different = this.#listDifferent(rows)
    const obsolete = removed.filter((name) => existsSync(this.#path(name)))
    runAsOwner(this.#directory, () => {
      for (const { name, content } of different) writePrivateFile(this.#path(name), content)
      for (const name of obsolete) rmSync(this.#path(name))
    })
    const names = [...different.map(({ name }) => name), ...obsolete]
    if (names.length > 0) for (const listener of this.#listeners) listener(names)
  }

  #listDifferent(rows: readonly SharedRow[]): { readonly name: string; readonly content: Buffer }[] {
    const shared = rows.map(({ name, sealedContent }) => ({ name, content: this.#open(name, sealedContent) }))
    return shared.filter(({ name, content }) => {
      const path = this.#path(name)
      return !existsSync(path) || !readFileSync(path).equals(content)
    })
  }

  #seal(name: string, content: Uint8Array | string): string {
    return this.#cipher.encrypt(Buffer.from(content).toString('base64'), toPlace(name))
  }

  #isReadable(name: string, sealedContent: string): boolean {
    try {
      this.#open(name, sealedContent)
      return true
    } catch (error) {
      if (error instanceof KeyFileError) return false
      throw error
    }
  }

  /** @throws KeyFileError if it is encrypted under another cluster key */
  #open(name: string, sealedContent: string): Buffer {
    requirePermitted(name)
    try {
      return Buffer.from(this.#cipher.decrypt(sealedContent, toPlace(name)), 'base64')
    } catch (error) {
      if (!(error instanceof SecretError)) throw error
      throw new KeyFileError(`the shared file ${name} is not encrypted under the cluster key of this controller`)
    }
  }

  #path(name: string): string {
    return join(this.#directory, name)
  }
}

function readRows(db: Kysely<Database>): Promise<SharedRow[]> {
  return db.selectFrom('shared_files').select(['name', 'sealedContent']).execute()
}

/** Another key than that of commits. */
function deriveKey(clusterKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', clusterKey, '', 'shared files', SECRETS_KEY_BYTES))
}

const toPlace = (name: string) => ({ resource: sharedFiles.plural, id: name, field: 'content' })

/** A name is a path in every directory. */
function requirePermitted(name: string): void {
  if (!PERMITTED.test(name)) throw new RangeError(`controllers do not share a file ${name}`)
}
