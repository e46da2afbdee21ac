// A token bucket for each key, with an average rate and a maximum burst.
import type { Instant } from './clock.ts'

export interface RateLimitOptions {
  readonly perSecond: number
  readonly burst: number
  /** How many processes share the limit: each grants its part. One by default. */
  readonly countSharers?: () => number
}

interface Bucket {
  tokens: number
  filledAt: Instant
}

/**
 * Memory is bounded by the keys that were used within the time in which an empty bucket fills: a bucket that was not used for
 * that long is full, and removed.
 */
export class RateLimit {
  readonly #options: RateLimitOptions
  readonly #fillMs: number
  #current = new Map<string, Bucket>()
  #previous = new Map<string, Bucket>()
  #rotatedAt: Instant = 0

  constructor(options: RateLimitOptions) {
    this.#options = options
    this.#fillMs = Math.ceil((options.burst / options.perSecond) * 1_000)
  }

  /** The number of buckets in memory. */
  get size(): number {
    return this.#current.size + this.#previous.size
  }

  /** Takes a token. Returns 0 if there was one, else the seconds until there is. */
  take(key: string, now: Instant): number {
    const bucket = this.#bucket(key, now)
    const seconds = this.#secondsUntilToken(bucket)
    if (seconds === 0) bucket.tokens -= 1
    return seconds
  }

  /** Takes nothing. Returns 0 if there is a token, else the seconds until there is. */
  peek(key: string, now: Instant): number {
    const isTracked = this.#current.has(key) || this.#previous.has(key)
    return isTracked ? this.#secondsUntilToken(this.#bucket(key, now)) : 0
  }

  /** The part of this process, in which a request has a place at least. */
  get #own(): { readonly perSecond: number; readonly burst: number } {
    const { perSecond, burst, countSharers } = this.#options
    if (!countSharers) return this.#options
    const sharers = countSharers()
    return { perSecond: perSecond / sharers, burst: Math.max(1, burst / sharers) }
  }

  #secondsUntilToken({ tokens }: Bucket): number {
    return tokens < 1 ? Math.ceil((1 - tokens) / this.#own.perSecond) : 0
  }

  #bucket(key: string, now: Instant): Bucket {
    this.#rotate(now)
    const { perSecond, burst } = this.#own
    const bucket = this.#current.get(key) ?? this.#previous.get(key) ?? { tokens: burst, filledAt: now }
    // A clock that was set back fills nothing, and does not keep the bucket from filling again.
    const elapsedMs = Math.max(0, now - bucket.filledAt)
    bucket.tokens = Math.min(burst, bucket.tokens + (elapsedMs / 1_000) * perSecond)
    bucket.filledAt = now
    this.#previous.delete(key)
    this.#current.set(key, bucket)
    return bucket
  }

  #rotate(now: Instant): void {
    if (now >= this.#rotatedAt && now - this.#rotatedAt < this.#fillMs) return
    this.#previous = now - this.#rotatedAt < 2 * this.#fillMs ? this.#current : new Map()
    this.#current = new Map()
    this.#rotatedAt = now
  }
}
