// Password hashes: Argon2id in PHC form, a few at a time, with a bounded line of waiting ones.
import { randomBytes } from 'node:crypto'
import { errors } from '../errors.ts'

/** What one hash costs: memory in KiB, passes, lanes. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

// OWASP Password Storage Cheat Sheet: Argon2id with 19 MiB of memory, two passes, one lane.
const RECOMMENDED: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

// More at once than there are cores to run them would only take memory, and the thread pool from everything else.
const AT_ONCE = 2
const RETRY_AFTER_SECONDS = 2

export class Passwords {
  readonly #longestQueue: number
  readonly #cost: PasswordCost
  /** A hash of nothing, to compare with where there is no user. */
  readonly #decoy: string
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(longestQueue: number, cost: PasswordCost = RECOMMENDED) {
    this.#longestQueue = longestQueue
    this.#cost = cost
    this.#decoy = phc(cost, randomBytes(16), randomBytes(32))
  }

  /** A hash to be stored. @throws SERVER_TOO_MANY_REQUESTS where too many wait already */
  async hash(password: string): Promise<string> {
    const argon2 = await import('argon2')
    return this.#inTurn(() => argon2.hash(password, { type: argon2.argon2id, ...this.#cost }))
  }

  /**
   * Whether the password is the one that was hashed. Without a hash, because there is no such user, it takes as long and
   * says no: how long a refusal takes must not tell who exists. @throws SERVER_TOO_MANY_REQUESTS
   */
  async verify(hash: string | undefined, password: string): Promise<boolean> {
    const argon2 = await import('argon2')
    const isRight = await this.#inTurn(() => argon2.verify(hash ?? this.#decoy, password))
    return isRight && hash !== undefined
  }

  /** Whether a hash was made at a lower cost than hashes are made at now. */
  isCheap(hash: string): boolean {
    const parameter = (name: string) => Number(new RegExp(`[$,]${name}=(\\d+)`).exec(hash)?.[1] ?? 0)
    return parameter('m') < this.#cost.memoryCost || parameter('t') < this.#cost.timeCost
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < AT_ONCE) this.#running += 1
    else await this.#turn()
    try {
      return await work()
    } finally {
      // Whoever waits longest takes over the place, so that no newcomer gets in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#longestQueue) {
      throw errors.SERVER_TOO_MANY_REQUESTS(undefined, {
        cause: `${this.#waiting.length} passwords wait for their turn`,
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      })
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

function phc({ memoryCost, timeCost, parallelism }: PasswordCost, salt: Buffer, hash: Buffer): string {
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${text(salt)}$${text(hash)}`
}
