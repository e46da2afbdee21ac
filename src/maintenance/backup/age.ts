// Encrypts and decrypts files by a passphrase, in the format of age (https://age-encryption.org/v1): scrypt, HKDF-SHA-256, and
// ChaCha20-Poly1305 over chunks. Other tools that read the format can therefore decrypt a backup.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, scrypt } from 'node:crypto'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'
import { ByteReader } from './byte-reader.ts'

const INTRO = 'age-encryption.org/v1'
const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16
const FILE_KEY_BYTES = 16
const SALT_BYTES = 16
const NONCE_BYTES = 16
// The cost that OWASP recommends for scrypt: 128 MiB of memory, for a moment.
const LOG_N = 17
// A file with a higher cost than that exhausts the memory.
const MAX_LOG_N = 20
const MAX_LINE_BYTES = 256

/** A file cannot be decrypted. */
export class DecryptionError extends Error {
  readonly isWrongPassphrase: boolean

  constructor(reason: string, isWrongPassphrase = false) {
    super(reason)
    this.name = 'DecryptionError'
    this.isWrongPassphrase = isWrongPassphrase
  }
}

/** Whether a file begins as encrypted files do. */
export function isEncrypted(head: Buffer): boolean {
  return head.subarray(0, INTRO.length + 1).equals(Buffer.from(`${INTRO}\n`))
}

/** The encrypted form of `plain`. */
export async function* encrypt(
  plain: AsyncIterable<Uint8Array>,
  passphrase: string,
  logN = LOG_N,
): AsyncGenerator<Buffer> {
  const [fileKey, salt, nonce] = [randomBytes(FILE_KEY_BYTES), randomBytes(SALT_BYTES), randomBytes(NONCE_BYTES)]
  const wrapKey = await deriveWrapKey(passphrase, salt, logN)
  const body = seal(wrapKey, Buffer.alloc(12), fileKey)
  const head = `${INTRO}\n-> scrypt ${toText(salt)} ${logN}\n${toText(body)}\n---`
  yield Buffer.from(`${head} ${toText(computeHeaderMac(fileKey, head))}\n`)
  yield nonce
  const key = derivePayloadKey(fileKey, nonce)
  const reader = new ByteReader(plain)
  let chunk = await reader.read(CHUNK_BYTES)
  for (let counter = 0; ; counter++) {
    // The last chunk is marked, so that a file that is cut between two chunks is detected.
    const next = chunk.length < CHUNK_BYTES ? Buffer.alloc(0) : await reader.read(CHUNK_BYTES)
    yield seal(key, toChunkNonce(counter, next.length === 0), chunk)
    if (next.length === 0) return
    chunk = next
  }
}

/** The content of an encrypted file. @throws DecryptionError, also after a part of the content */
export async function* decrypt(encrypted: AsyncIterable<Uint8Array>, passphrase: string): AsyncGenerator<Buffer> {
  const reader = new ByteReader(encrypted)
  const fileKey = await readFileKey(reader, passphrase)
  const key = derivePayloadKey(fileKey, await reader.read(NONCE_BYTES))
  let chunk = await reader.read(CHUNK_BYTES + TAG_BYTES)
  for (let counter = 0; ; counter++) {
    const next = await reader.read(CHUNK_BYTES + TAG_BYTES)
    const isLast = next.length === 0
    const content = open(key, toChunkNonce(counter, isLast), chunk)
    if (!content) throw new DecryptionError('a part of it was changed, or it is incomplete')
    yield content
    if (isLast) return
    chunk = next
  }
}

async function readFileKey(reader: ByteReader, passphrase: string): Promise<Buffer> {
  const [intro, recipient, body, mac] = [
    await reader.readLine(MAX_LINE_BYTES),
    await reader.readLine(MAX_LINE_BYTES),
    await reader.readLine(MAX_LINE_BYTES),
    await reader.readLine(MAX_LINE_BYTES),
  ]
  const [, salt = '', logN = ''] = /^-> scrypt ([A-Za-z0-9+/]{22}) ([1-9]\d?)$/.exec(recipient) ?? []
  const [, macText] = /^--- ([A-Za-z0-9+/]{43})$/.exec(mac) ?? []
  if (intro !== INTRO || salt === '' || macText === undefined || Number(logN) > MAX_LOG_N)
    throw new DecryptionError('it is not encrypted by a passphrase')
  const wrapKey = await deriveWrapKey(passphrase, Buffer.from(salt, 'base64'), Number(logN))
  const fileKey = open(wrapKey, Buffer.alloc(12), Buffer.from(body, 'base64'))
  if (!fileKey) throw new DecryptionError('the passphrase is wrong', true)
  const expected = computeHeaderMac(fileKey, [intro, recipient, body, '---'].join('\n'))
  const actual = Buffer.from(macText, 'base64')
  if (!isEqualInConstantTime(actual, expected)) throw new DecryptionError('its header was changed')
  return fileKey
}

function deriveWrapKey(passphrase: string, salt: Buffer, logN: number): Promise<Buffer> {
  const labelled = Buffer.concat([Buffer.from(`${INTRO}/scrypt`), salt])
  const cost = { N: 2 ** logN, r: 8, p: 1, maxmem: 2 * 128 * 8 * 2 ** logN }
  return new Promise((resolve, reject) =>
    scrypt(passphrase, labelled, 32, cost, (error, key) => (error ? reject(error) : resolve(key))),
  )
}

function derivePayloadKey(fileKey: Buffer, nonce: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', fileKey, nonce, 'payload', 32))
}

function computeHeaderMac(fileKey: Buffer, head: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', fileKey, Buffer.alloc(0), 'header', 32))
  return createHmac('sha256', key).update(head).digest()
}

/** Eleven bytes of the number of the chunk, and one that says whether it is the last. */
function toChunkNonce(counter: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeBigUInt64BE(BigInt(counter), 3)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

function seal(key: Buffer, nonce: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** The plain text; undefined if the key is wrong, or the text was changed. */
function open(key: Buffer, nonce: Buffer, sealed: Buffer): Buffer | undefined {
  if (sealed.length < TAG_BYTES) return undefined
  const decipher = createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}

/** Base64 without padding. */
function toText(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
