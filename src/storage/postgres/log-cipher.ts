// Encrypts the commits of a shared log, and chains them: who can only reach the database neither reads nor forges, drops or reorders any.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { LogPosition } from '../commit-log.ts'

/** The length of a cluster key, in bytes. */
export const CLUSTER_KEY_BYTES = 32

const ALGORITHM = 'aes-256-gcm'
const VERSION = 1
const KEY_ID_BYTES = 8
// NIST SP 800-38D §8.2: a random nonce of 96 bits is good for 2^32 commits under one key.
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEADER_BYTES = 1 + KEY_ID_BYTES
// A group of 32 creates takes 1.8 KB a change as JSON, and a quarter of that at the fastest level.
const DEFLATE_LEVEL = 1

/** A payload was not made under the cluster key, not for this place in the log, or was changed. */
export class LogPayloadError extends Error {
  override readonly name = 'LogPayloadError'
}

export class LogCipher {
  readonly #encryptionKey: Buffer
  readonly #chainKey: Buffer
  readonly #header: Buffer

  /** @param clusterKey 32 random bytes, the same on every controller of the network */
  constructor(clusterKey: Buffer) {
    if (clusterKey.length !== CLUSTER_KEY_BYTES) throw new RangeError(`a cluster key has ${CLUSTER_KEY_BYTES} bytes`)
    const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', clusterKey, '', purpose, CLUSTER_KEY_BYTES))
    this.#encryptionKey = derive('log encryption')
    this.#chainKey = derive('log chain')
    const keyId = createHash('sha256').update(derive('key id')).digest().subarray(0, KEY_ID_BYTES)
    this.#header = Buffer.concat([Buffer.of(VERSION), keyId])
  }

  /** Compresses and encrypts a commit: version, id of the key, nonce, ciphertext, tag. @param before the position that it follows */
  seal(text: string, before: LogPosition): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#encryptionKey, nonce).setAAD(toAdditionalData(before))
    const compressed = deflateRawSync(text, { level: DEFLATE_LEVEL })
    return Buffer.concat([this.#header, nonce, cipher.update(compressed), cipher.final(), cipher.getAuthTag()])
  }

  /** @throws LogPayloadError if it was not sealed under this key to follow `before` */
  open(payload: Buffer, before: LogPosition): string {
    const place = `the commit after ${before.position}`
    if (payload[0] !== VERSION) throw new LogPayloadError(`${place} has a form that this release cannot read`)
    if (!payload.subarray(0, HEADER_BYTES).equals(this.#header))
      throw new LogPayloadError(`${place} is encrypted under another cluster key`)
    const nonce = payload.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
    const tagAt = payload.length - TAG_BYTES
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#encryptionKey, nonce, { authTagLength: TAG_BYTES })
        .setAAD(toAdditionalData(before))
        .setAuthTag(payload.subarray(tagAt))
      const compressed = [decipher.update(payload.subarray(HEADER_BYTES + NONCE_BYTES, tagAt)), decipher.final()]
      return inflateRawSync(Buffer.concat(compressed)).toString('utf8')
    } catch (cause) {
      throw new LogPayloadError(`${place} was changed, or belongs elsewhere`, { cause })
    }
  }

  /** The chain that a payload leads to, hex. */
  extend({ position, chain }: LogPosition, payload: Buffer): string {
    return createHmac('sha256', this.#chainKey).update(`${position} ${chain} `).update(payload).digest('hex')
  }

  /** Whether a payload leads to this chain. */
  leadsTo(chain: string, before: LogPosition, payload: Buffer): boolean {
    const [expected, stated] = [Buffer.from(this.extend(before, payload), 'hex'), Buffer.from(chain, 'hex')]
    return expected.length === stated.length && timingSafeEqual(expected, stated)
  }
}

function toAdditionalData({ position, chain }: LogPosition): Buffer {
  return Buffer.from(`${position} ${chain}`)
}
