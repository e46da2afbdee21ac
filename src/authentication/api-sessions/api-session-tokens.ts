// The tokens of sessions: derived from a key and the session's id, so that only their hashes need to be stored.
//
// The hashes have no index, because sessions are looked up in memory only.
import { createHmac, hash } from 'node:crypto'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import { loadOrCreateKey } from '../../pki/files.ts'

/** The length of the key, in bytes. */
export const SESSION_TOKEN_KEY_BYTES = 32

// About 1.5 MB. A client that shows its own session every few seconds would pay for the HMAC each time otherwise.
const MAX_RECENT = 10_000

export class ApiSessionTokens {
  readonly #key: Buffer
  /** Each sign-in uses its token several times, and each client asks for its own session again and again. */
  readonly #recent = createBoundedCache<string>(MAX_RECENT)

  constructor(key: Buffer) {
    this.#key = key
  }

  /** Loads the key of a data directory; creates it at the first start. */
  static open(file: string): ApiSessionTokens {
    return new ApiSessionTokens(loadOrCreateKey(file, SESSION_TOKEN_KEY_BYTES))
  }

  /** How many tokens are cached. */
  get size(): number {
    return this.#recent.size
  }

  /** The token of a session: a version 4 UUID whose random bits come from HMAC-SHA-256 of the session's id. */
  derive(sessionId: string): string {
    const recent = this.#recent.get(sessionId)
    if (recent) return recent
    const token = this.#compute(sessionId)
    this.#recent.set(sessionId, token)
    return token
  }

  /** A key for another purpose, which follows from this one. */
  deriveKey(purpose: string): Buffer {
    return createHmac('sha256', this.#key).update(`key: ${purpose}`).digest()
  }

  /** Drops what is cached of a session that has ended. */
  evict(sessionId: string): void {
    this.#recent.delete(sessionId)
  }

  #compute(sessionId: string): string {
    const bytes = createHmac('sha256', this.#key).update(sessionId).digest().subarray(0, 16)
    // RFC 9562 §5.4: version in the high half of byte 6, variant in the high bits of byte 8.
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
    const hex = bytes.toString('hex')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  }
}

/** Returns the stored form of a token: its SHA-256, base64url. */
export function hashToken(token: string): string {
  return hash('sha256', token.toLowerCase(), 'base64url')
}
