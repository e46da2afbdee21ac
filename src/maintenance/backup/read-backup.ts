// Reads a backup from its beginning to its end, and requires that each file in it is as it was packed.
import { createHash } from 'node:crypto'
import { createReadStream, openSync } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { DecryptionError, decrypt, isEncrypted } from './age.ts'
import { BackupError, damagedError, invalidBackupError, notEncryptedError } from './backup-error.ts'
import { type BackupFile, isBackupFileName, MANIFEST_NAME, type Manifest, parseManifest } from './manifest.ts'
import { ArchiveError, type UnpackedFile, unpack } from './tar.ts'

export interface BackupSource {
  readonly file: string
  readonly passphrase?: string | undefined
}

const READ_BYTES = 1024 * 1024
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b])
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024

/**
 * Passes the content of each file in a backup to `take`, which must consume it.
 * @returns its manifest
 * @throws BackupError if the file is not a backup, is damaged or incomplete, or cannot be decrypted
 */
export async function readBackup(
  { file, passphrase }: BackupSource,
  take: (name: string, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<Manifest> {
  const descriptor = openSync(file, 'r')
  const stream = createReadStream('', { fd: descriptor, highWaterMark: READ_BYTES })
  try {
    return await readFiles(file, openArchive(file, stream, passphrase), take)
  } catch (error) {
    throw toReadError(file, error)
  } finally {
    stream.destroy()
  }
}

/**
 * The manifest that a backup begins with; the rest is not read.
 * @throws BackupError if the file is not a backup, or cannot be decrypted
 */
export async function openBackupManifest({ file, passphrase }: BackupSource): Promise<Manifest> {
  const stream = createReadStream(file, { highWaterMark: READ_BYTES })
  try {
    for await (const unpacked of unpack(openArchive(file, stream, passphrase))) {
      return await readManifest(file, unpacked)
    }
    throw invalidBackupError(file)
  } catch (error) {
    throw toReadError(file, error)
  } finally {
    stream.destroy()
  }
}

/** The manifest of a file, encrypted or not; undefined if it is not a backup, or the passphrase does not open it. */
export async function readBackupManifest({ file, passphrase }: BackupSource): Promise<Manifest | undefined> {
  try {
    return await openBackupManifest({ file, passphrase })
  } catch (error) {
    const isPlain = error instanceof BackupError && error.code === 'NOT_ENCRYPTED'
    return isPlain ? await readBackupManifest({ file }) : undefined
  }
}

/** The tar archive in a file: decrypted if it is encrypted, and decompressed. */
async function* openArchive(
  file: string,
  stream: AsyncIterable<Buffer>,
  passphrase: string | undefined,
): AsyncGenerator<Buffer> {
  const chunks = stream[Symbol.asyncIterator]()
  const { value: first = Buffer.alloc(0) } = await chunks.next()
  async function* whole(): AsyncGenerator<Buffer> {
    yield first
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  if (isEncrypted(first)) {
    if (passphrase === undefined) {
      const message = `${file} is encrypted`
      throw new BackupError('PASSPHRASE_REQUIRED', message, '--passphrase-file with the file that holds its passphrase')
    }
    yield* decompress(decrypt(whole(), passphrase))
  } else {
    if (!first.subarray(0, 2).equals(GZIP_MAGIC)) throw invalidBackupError(file)
    // An account that can write to the folder could have put it in place of the encrypted one.
    if (passphrase !== undefined) throw notEncryptedError(file)
    yield* decompress(whole())
  }
}

async function* decompress(compressed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { Readable } = await import('node:stream')
  const source = Readable.from(compressed)
  const gunzip = createGunzip({ chunkSize: READ_BYTES })
  source.on('error', (error) => gunzip.destroy(error))
  try {
    for await (const chunk of source.pipe(gunzip)) yield chunk as Buffer
  } finally {
    source.destroy()
  }
}

async function readFiles(
  file: string,
  archive: AsyncIterable<Buffer>,
  take: (name: string, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<Manifest> {
  let manifest: Manifest | undefined
  const missing = new Map<string, BackupFile>()
  for await (const unpacked of unpack(archive)) {
    if (!manifest) {
      manifest = await readManifest(file, unpacked)
      for (const each of manifest.files) missing.set(each.name, each)
      continue
    }
    const { name, bytes } = unpacked
    const expected = missing.get(name)
    if (!expected || !isBackupFileName(name)) throw damagedError(file, `it contains ${JSON.stringify(name)}`)
    // Before any of it is unpacked: a small file can contain more than the disk takes.
    if (bytes !== expected.bytes)
      throw damagedError(file, `${name} in it has ${bytes} bytes, and not ${expected.bytes}`)
    missing.delete(name)
    const hash = createHash('sha256')
    await take(name, observe(unpacked.content, hash))
    if (hash.digest('hex') !== expected.sha256) throw damagedError(file, `${name} in it was changed`)
  }
  if (!manifest) throw invalidBackupError(file)
  const [first] = missing.keys()
  if (first !== undefined) throw damagedError(file, `${first} is missing in it`)
  return manifest
}

async function readManifest(file: string, { name, bytes, content }: UnpackedFile): Promise<Manifest> {
  if (name !== MANIFEST_NAME || bytes > MAX_MANIFEST_BYTES) throw invalidBackupError(file)
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk)
  return parseManifest(file, Buffer.concat(chunks).toString())
}

async function* observe(content: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    hash.update(chunk)
    yield chunk
  }
}

function toReadError(file: string, error: unknown): unknown {
  if (error instanceof DecryptionError) {
    if (!error.isWrongPassphrase) return damagedError(file, error.message, error)
    return new BackupError(
      'WRONG_PASSPHRASE',
      `the passphrase of ${file} is wrong`,
      'name the passphrase file that it was made with',
    )
  }
  if (error instanceof ArchiveError) return damagedError(file, error.message, error)
  const { code } = error as NodeJS.ErrnoException
  return code?.startsWith('Z_') ? damagedError(file, 'it is incomplete, or was changed', error) : error
}
