// The files of OpenZiti's controller while they are read: they must not be in use, and are not changed.
import { createHash } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { damage } from './bolt-page.ts'
import { SourceError, toRightsError } from './source-error.ts'

const LOCKS = '/proc/locks'
/** The first bytes of a file that is compressed by gzip. */
const GZIP_MAGIC = 0x1f8b
const DIGEST_CHUNK_BYTES = 2 ** 19
// A few bytes can stand for very many.
const MAX_UNPACKED_BYTES = 8 * 2 ** 30

/** @throws SourceError if a process has the database open: its pages change while they are read */
export function requireUnlocked(path: string): void {
  if (!statDatabase(path).isFile()) throw new SourceError('NOT_A_DATABASE', `${path} is not a file`, '--database FILE')
  // Linux lists locks; elsewhere the digest tells a database that changes.
  if (!existsSync(LOCKS)) return
  const { ino } = statSync(path)
  const isLocked = readFileSync(LOCKS, 'utf8')
    .split('\n')
    .some((line) => / FLOCK /.test(line) && line.includes(`:${ino} `))
  if (!isLocked) return
  const remedy = "stop OpenZiti's controller, or adopt a snapshot: ziti edge db snapshot, then --database FILE"
  throw new SourceError('DATABASE_IN_USE', `a process has ${path} open`, remedy)
}

function statDatabase(path: string): Stats {
  try {
    const status = statSync(path)
    accessSync(path, constants.R_OK)
    return status
  } catch (error) {
    const remedy = '--database FILE, or --path-prefix OLD=NEW if the files are elsewhere on this machine'
    const problem = `the database ${path}`
    throw (
      toRightsError(`${problem} cannot be read`, error) ??
      new SourceError('NO_DATABASE', `${problem} does not exist`, remedy, error)
    )
  }
}

/** Returns the SHA-256 of a file, in hexadecimal. */
export async function computeFileDigest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: DIGEST_CHUNK_BYTES })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

export function isCompressed(path: string): boolean {
  const start = Buffer.alloc(2)
  const file = openSync(path, 'r')
  try {
    return readSync(file, start, 0, 2, 0) === 2 && start.readUInt16BE(0) === GZIP_MAGIC
  } finally {
    closeSync(file)
  }
}

/** Unpacks a compressed file into a new one, which only this account can read. @throws SourceError if it is damaged, or too large */
export async function unpackFile(path: string, target: string, maxBytes = MAX_UNPACKED_BYTES): Promise<void> {
  let bytes = 0
  const limit = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (bytes > maxBytes)
        throw new SourceError(
          'DATABASE_TOO_LARGE',
          `${path} holds more than ${maxBytes} bytes`,
          'unpack it with gunzip',
        )
      yield chunk
    }
  }
  try {
    const output = createWriteStream(target, { flags: 'wx', mode: 0o600 })
    await pipeline(createReadStream(path), createGunzip(), limit, output)
  } catch (error) {
    // Codes of the library begin like this.
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_')) throw damage(`${path} cannot be unpacked`)
    throw error
  }
}
