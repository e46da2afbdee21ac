// Password hashes: Argon2id in PHC form, a few at a time, with a bounded line of waiting ones.
import { errors } from '../errors.ts'

// OWASP Password Storage Cheat Sheet: Argon2id with 19 MiB of memory, two passes, one lane.
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

// More at once than there are cores to run them would only take memory, and the thread pool from everything else.
const AT_ONCE = 2
const RETRY_AFTER_SECONDS = 2

export class Passwords {
  readonly #longestQueue: number
  readonly #waiting: (() => void)[] = []
  #running = 0
  #decoy: Promise<string> | undefined

  constructor(longestQueue: number) {
    this.#longestQueue = longestQueue
  }

  /** A hash to be stored. @throws SERVER_TOO_MANY_REQUESTS where too many wait already */
  async hash(password: string): Promise<string> {
    const argon2 = await import('argon2')
    return this.#inTurn(() => argon2.hash(password, { type: argon2.argon2id, ...COST }))
  }

  /**
   * Whether the password is the one that was hashed. Without a hash, because there is no such user, it takes as long and
   * says no: how long a refusal takes must not tell who exists. @throws SERVER_TOO_MANY_REQUESTS
   */
  async verify(hash: string | undefined, password: string): Promise<boolean> {
    const argon2 = await import('argon2')
    this.#decoy ??= this.hash('no user has this password')
    const against = hash ?? (await this.#decoy)
    const isRight = await this.#inTurn(() => argon2.verify(against, password))
    return isRight && hash !== undefined
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) {
      if (this.#waiting.length >= this.#longestQueue) {
        throw errors.SERVER_TOO_MANY_REQUESTS(undefined, {
          cause: `${this.#waiting.length} passwords wait for their turn`,
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        })
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    this.#running += 1
    try {
      return await work()
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }
}
