// Encrypts what controllers share by a database, and chains its commits: who can only reach the database neither reads nor forges, drops
// or reorders any.
//
// A commit is encrypted and chained under one key, which its chain names. After the first commit under a newer key those under older ones
// are refused, so that a key which was replaced forges nothing.
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { openBytes, sealBytes } from '../../foundation/sealed-bytes.ts'
import type { LogPosition } from '../commit-log.ts'

/** The length of a cluster key, in bytes. */
export const CLUSTER_KEY_BYTES = 32

const VERSION = 1
const KEY_ID_BYTES = 8
const HEADER_BYTES = 1 + KEY_ID_BYTES
// A group of 32 creates takes 1.8 KB a change as JSON, and a quarter of that at the fastest level.
const DEFLATE_LEVEL = 1

/** A payload was not made under a cluster key that this controller has, not for this place, or was changed. */
export class LogPayloadError extends Error {
  override readonly name = 'LogPayloadError'
}

/** The keys that are derived from one cluster key. */
interface DerivedKeys {
  /** Hex. */
  readonly id: string
  readonly header: Buffer
  readonly encryption: Buffer
  readonly chain: Buffer
}

export class LogCipher {
  /** Asked for a key that is newer than those that the cipher has, by its id. */
  findNewerKey: (keyId: string) => Buffer | undefined = () => undefined
  /** The newest first. */
  #keys: readonly DerivedKeys[] = []

  /** @param clusterKeys the newest first: 32 random bytes each, the same on every controller of the network */
  constructor(...clusterKeys: readonly Buffer[]) {
    this.replaceKeys(...clusterKeys)
  }

  /** From now on the first of these keys encrypts, and each of them decrypts. */
  replaceKeys(...clusterKeys: readonly Buffer[]): void {
    if (clusterKeys.length === 0) throw new RangeError('a cipher has at least one key')
    this.#keys = clusterKeys.map(deriveKeys)
  }

  /** The ids of the keys, hex, the newest first. */
  get keyIds(): readonly string[] {
    return this.#keys.map(({ id }) => id)
  }

  /** Compresses and encrypts a commit. @param before the position that it follows */
  seal(text: string, before: LogPosition): Buffer {
    return this.encrypt(deflateRawSync(text, { level: DEFLATE_LEVEL }), describeCommit(before), before.chain)
  }

  /** @throws LogPayloadError if it was not sealed under one of the keys to follow `before` */
  open(payload: Buffer, before: LogPosition): string {
    return inflateRawSync(this.decrypt(payload, describeCommit(before), before.chain)).toString('utf8')
  }

  /**
   * Encrypts bytes for one place: version, id of the key, nonce, ciphertext, tag.
   * @param place names it, also in errors
   * @param context what else has to be the same when it is decrypted
   */
  encrypt(data: Uint8Array, place: string, context = ''): Buffer {
    const [{ header, encryption }] = this.#keys as [DerivedKeys]
    return Buffer.concat([header, sealBytes(encryption, data, toAdditionalData(place, context))])
  }

  /** @throws LogPayloadError if it was not encrypted under one of the keys for this place */
  decrypt(payload: Buffer, place: string, context = ''): Buffer {
    if (payload[0] !== VERSION) throw new LogPayloadError(`${place} has a form that this release cannot read`)
    const { encryption } = this.#requireKey(payload, place)
    try {
      return openBytes(encryption, payload.subarray(HEADER_BYTES), toAdditionalData(place, context))
    } catch (cause) {
      throw new LogPayloadError(`${place} was changed, or belongs elsewhere`, { cause })
    }
  }

  /** The chain that a payload leads to, hex: the id of its key, and a message authentication code. @throws LogPayloadError */
  extend(before: LogPosition, payload: Buffer): string {
    const { id, chain } = this.#requireKey(payload, describeCommit(before))
    const code = createHmac('sha256', chain).update(`${before.position} ${before.chain} `).update(payload).digest('hex')
    return `${id}${code}`
  }

  /** Whether a payload leads to this chain, under a key that is not older than that of the commit before. @throws LogPayloadError */
  leadsTo(chain: string, before: LogPosition, payload: Buffer): boolean {
    const [expected, stated] = [Buffer.from(this.extend(before, payload), 'hex'), Buffer.from(chain, 'hex')]
    if (expected.length !== stated.length || !timingSafeEqual(expected, stated)) return false
    const keyBefore = this.#findAge(before.chain)
    return keyBefore === undefined || (this.#findAge(chain) as number) <= keyBefore
  }

  /** How many keys are newer than that of a chain; undefined if that key is not known any more. */
  #findAge(chain: string): number | undefined {
    const age = this.#keys.findIndex(({ id }) => chain.startsWith(id))
    return age === -1 ? undefined : age
  }

  #requireKey(payload: Buffer, place: string): DerivedKeys {
    const key = this.#keys.find(({ header }) => payload.subarray(0, HEADER_BYTES).equals(header))
    return key ?? this.#takeNewerKey(payload.subarray(1, HEADER_BYTES).toString('hex'), place)
  }

  #takeNewerKey(keyId: string, place: string): DerivedKeys {
    const clusterKey = this.findNewerKey(keyId)
    const key = clusterKey && deriveKeys(clusterKey)
    if (!key || key.id !== keyId)
      throw new LogPayloadError(
        `${place} is encrypted under another cluster key: copy cluster.key from another controller of the network`,
      )
    this.#keys = [key, ...this.#keys]
    return key
  }
}

/** The id by which payloads name a cluster key: it reveals nothing of it. */
export function computeKeyId(clusterKey: Buffer): string {
  return deriveKeys(clusterKey).id
}

function deriveKeys(clusterKey: Buffer): DerivedKeys {
  if (clusterKey.length !== CLUSTER_KEY_BYTES) throw new RangeError(`a cluster key has ${CLUSTER_KEY_BYTES} bytes`)
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', clusterKey, '', purpose, CLUSTER_KEY_BYTES))
  const keyId = createHash('sha256').update(derive('key id')).digest().subarray(0, KEY_ID_BYTES)
  return {
    id: keyId.toString('hex'),
    header: Buffer.concat([Buffer.of(VERSION), keyId]),
    encryption: derive('log encryption'),
    chain: derive('log chain'),
  }
}

function describeCommit({ position }: LogPosition): string {
  return `the commit after ${position}`
}

function toAdditionalData(place: string, context: string): Buffer {
  return Buffer.from(`${place}\0${context}`)
}
