// Writes and reads archives in the ustar format (POSIX.1-1988), with regular files only, so that any tar can unpack a backup.
import { ByteReader } from './byte-reader.ts'

const BLOCK_BYTES = 512
// The largest number of eleven octal digits.
const MAX_FILE_BYTES = 8 ** 11 - 1
const READ_BYTES = 256 * 1024
const MAX_TRAILING_BYTES = 1024 * 1024

/** A file of an archive that is written. */
export interface PackedFile {
  readonly name: string
  readonly bytes: number
  readonly content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

/** A file of an archive that is read; its content must be consumed before the next one is read. */
export interface UnpackedFile {
  readonly name: string
  readonly bytes: number
  readonly content: AsyncIterable<Buffer>
}

/** An archive cannot be read. */
export class ArchiveError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'ArchiveError'
  }
}

/** The archive of the files, in their order. @param modifiedAt in milliseconds since 1970 */
export async function* pack(files: readonly PackedFile[], modifiedAt: number): AsyncGenerator<Uint8Array> {
  for (const { name, bytes, content } of files) {
    yield renderHeader(name, bytes, modifiedAt)
    let packedBytes = 0
    for await (const chunk of content) {
      packedBytes += chunk.length
      yield chunk
    }
    if (packedBytes !== bytes) throw new ArchiveError(`${name} has ${packedBytes} bytes, and not ${bytes}`)
    if (bytes % BLOCK_BYTES > 0) yield Buffer.alloc(BLOCK_BYTES - (bytes % BLOCK_BYTES))
  }
  yield Buffer.alloc(2 * BLOCK_BYTES)
}

/** The files of an archive, in their order. @throws ArchiveError if it is damaged or incomplete */
export async function* unpack(archive: AsyncIterable<Uint8Array>): AsyncGenerator<UnpackedFile> {
  const reader = new ByteReader(archive)
  for (;;) {
    const header = await reader.read(BLOCK_BYTES)
    if (header.length < BLOCK_BYTES) throw new ArchiveError('it is incomplete')
    if (header.every((byte) => byte === 0)) {
      // The layers around the archive, such as its compression, are verified at their end only. Programs pad archives.
      let trailingBytes = 0
      for (let length = -1; length !== 0; trailingBytes += length) {
        if (trailingBytes > MAX_TRAILING_BYTES) throw new ArchiveError('more follows its end than padding')
        length = (await reader.read(READ_BYTES)).length
      }
      return
    }
    const { name, bytes } = parseHeader(header)
    let isConsumed = false
    async function* content(): AsyncGenerator<Buffer> {
      for (let left = bytes; left > 0; ) {
        const chunk = await reader.read(Math.min(left, READ_BYTES))
        if (chunk.length === 0) throw new ArchiveError(`${name} is incomplete`)
        left -= chunk.length
        yield chunk
      }
      await reader.read((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES)
      isConsumed = true
    }
    yield { name, bytes, content: content() }
    if (!isConsumed) throw new Error(`the content of ${name} was not consumed`)
  }
}

function renderHeader(name: string, bytes: number, modifiedAt: number): Buffer {
  if (Buffer.byteLength(name) > 100 || bytes > MAX_FILE_BYTES) throw new ArchiveError(`${name} is too large`)
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  header.write(name, 0)
  header.write(`${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100)
  header.write(`${octal(bytes, 11)}\0${octal(Math.max(0, Math.floor(modifiedAt / 1000)), 11)}\0`, 124)
  // The checksum is computed as if its own field held blanks; 0 is the type of a regular file.
  header.write('        0', 148)
  header.write('ustar\u000000', 257)
  header.write(`${octal(computeChecksum(header), 6)}\0 `, 148)
  return header
}

function parseHeader(header: Buffer): { name: string; bytes: number } {
  const field = (start: number, length: number) => readHeaderText(header, start, length).trim()
  const expected = Number.parseInt(field(148, 8), 8)
  const blanked = Buffer.from(header).fill(' ', 148, 156)
  const bytes = Number.parseInt(field(124, 12), 8)
  if (computeChecksum(blanked) !== expected || !Number.isSafeInteger(bytes))
    throw new ArchiveError('it is not a tar archive')
  const type = field(156, 1)
  const name = readHeaderText(header, 0, 100)
  if ((type !== '0' && type !== '') || field(345, 155) !== '') throw new ArchiveError(`${name} is not a regular file`)
  return { name, bytes }
}

/** Text up to the first null byte. */
function readHeaderText(header: Buffer, start: number, length: number): string {
  return header.toString('utf8', start, start + length).split('\0', 1)[0] ?? ''
}

function computeChecksum(header: Buffer): number {
  return header.reduce((sum, byte) => sum + byte, 0)
}
