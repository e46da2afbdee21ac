// Password hashes: Argon2id in PHC form, a few at a time, by turns between those who ask.
import { randomBytes } from 'node:crypto'
import type { Context } from '../context.ts'
import { sourceFromContext } from '../sources.ts'
import { FairQueue, type Requester } from './fair-queue.ts'

/** What one hash costs: memory in KiB, passes, lanes. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

// OWASP Password Storage Cheat Sheet: Argon2id with 19 MiB of memory, two passes, one lane.
const RECOMMENDED: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

// More at once than there are cores to run them would only take memory, and the thread pool from everything else.
const CONCURRENCY = 2
const RETRY_AFTER_SECONDS = 2

/** On whose behalf a password is hashed or compared. */
export type PasswordContext = Pick<Context, 'caller' | 'origin'>

export class PasswordHasher {
  readonly #queue: FairQueue
  readonly #cost: PasswordCost
  /** A hash of nothing, to compare with where there is no user. */
  readonly #decoy: string

  constructor(maxWaiting: number, cost: PasswordCost = RECOMMENDED) {
    this.#queue = new FairQueue({ concurrency: CONCURRENCY, maxWaiting, retryAfterSeconds: RETRY_AFTER_SECONDS })
    this.#cost = cost
    this.#decoy = toPhc(cost, randomBytes(16), randomBytes(32))
  }

  /** Returns a hash to be stored. @throws SERVER_TOO_MANY_REQUESTS if too many wait already, most of them of this source */
  async hash(password: string, context: PasswordContext): Promise<string> {
    const argon2 = await import('argon2')
    const hash = () => argon2.hash(password, { type: argon2.argon2id, ...this.#cost })
    return this.#queue.run(requesterFromContext(context), hash)
  }

  /**
   * Whether the password is the one that was hashed. Without a hash, because there is no such user, it takes as long and
   * says no: how long a refusal takes must not tell who exists. @throws SERVER_TOO_MANY_REQUESTS
   */
  async verify(hash: string | undefined, password: string, context: PasswordContext): Promise<boolean> {
    const argon2 = await import('argon2')
    const compare = () => argon2.verify(hash ?? this.#decoy, password)
    const isRight = await this.#queue.run(requesterFromContext(context), compare)
    return isRight && hash !== undefined
  }

  /** Whether a hash was made at a lower cost than hashes are made at now. */
  needsRehash(hash: string): boolean {
    const memoryCost = Number(/[$,]m=(\d+)/.exec(hash)?.[1] ?? 0)
    const timeCost = Number(/[$,]t=(\d+)/.exec(hash)?.[1] ?? 0)
    return memoryCost < this.#cost.memoryCost || timeCost < this.#cost.timeCost
  }
}

function requesterFromContext(context: PasswordContext): Requester {
  return { source: sourceFromContext(context), isFavoured: context.caller.kind !== 'anonymous' }
}

function toPhc({ memoryCost, timeCost, parallelism }: PasswordCost, salt: Buffer, hash: Buffer): string {
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/={1,2}$/, '')
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${text(salt)}$${text(hash)}`
}
