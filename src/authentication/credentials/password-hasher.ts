// Password hashes: Argon2id in PHC form, with limited concurrency and fair turns between sources.
import { randomBytes } from 'node:crypto'
import { type Clock, systemClock } from '../../foundation/clock.ts'
import { sourceFromContext } from '../../storage/sources.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { FairQueue, type Requester } from './fair-queue.ts'

/** The cost of one hash: memory in KiB, passes, lanes. */
export interface PasswordCost {
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

// OWASP Password Storage Cheat Sheet: Argon2id with 19 MiB of memory, two passes, one lane.
export const RECOMMENDED_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

// RFC 9106 §3.1: for each lane.
const MIN_MEMORY_COST = 8

// A higher value would only take memory, and threads of the pool that other work needs.
const CONCURRENCY = 2

/** The part of a context by which hashing is scheduled. */
export type PasswordContext = Pick<Context, 'caller' | 'origin'>

export class PasswordHasher {
  readonly #queue: FairQueue
  readonly #cost: PasswordCost
  /** A hash that no password matches, for unknown users. */
  readonly #decoy: string

  constructor(
    maxWaiting: number,
    cost: PasswordCost = RECOMMENDED_COST,
    clock: Pick<Clock, 'monotonic'> = systemClock,
  ) {
    this.#queue = new FairQueue({ concurrency: CONCURRENCY, maxWaiting, clock })
    this.#cost = cost
    this.#decoy = toPhc(cost, randomBytes(16), randomBytes(32))
  }

  /** How many passwords wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /** Returns the hash of a password. @throws SERVER_TOO_MANY_REQUESTS if the queue has no place for this source */
  async hash(password: string, context: PasswordContext): Promise<string> {
    const argon2 = await import('argon2')
    const hash = () => argon2.hash(password, { type: argon2.argon2id, ...this.#cost })
    return this.#queue.run(requesterFromContext(context), hash)
  }

  /**
   * Whether the password matches the hash. Without a hash, for an unknown user, it takes the same time and returns false, so
   * that the duration does not reveal which users exist; likewise with a hash of a lower cost, as adopted users have before
   * their first sign-in. @throws SERVER_TOO_MANY_REQUESTS if the queue has no place
   */
  async verify(hash: string | undefined, password: string, context: PasswordContext): Promise<boolean> {
    const argon2 = await import('argon2')
    const compare = async () => {
      const filler = hash === undefined ? this.#decoy : this.#createFiller(hash)
      if (filler !== undefined) await argon2.verify(filler, password)
      return hash !== undefined && (await argon2.verify(hash, password))
    }
    return this.#queue.run(requesterFromContext(context), compare)
  }

  /** Returns a hash with which a hash of a lower cost takes as long as the decoy; undefined if it does already. */
  #createFiller(hash: string): string | undefined {
    const { memoryCost, timeCost } = readCost(hash)
    const missing = this.#cost.memoryCost - Math.ceil((memoryCost * timeCost) / this.#cost.timeCost)
    if (!this.needsRehash(hash) || missing < MIN_MEMORY_COST * this.#cost.parallelism) return undefined
    return toPhc({ ...this.#cost, memoryCost: missing }, randomBytes(16), randomBytes(32))
  }

  /** Whether a hash has a lower cost than new hashes. */
  needsRehash(hash: string): boolean {
    const { memoryCost, timeCost } = readCost(hash)
    return memoryCost < this.#cost.memoryCost || timeCost < this.#cost.timeCost
  }
}

function readCost(hash: string): Pick<PasswordCost, 'memoryCost' | 'timeCost'> {
  const memoryCost = Number(/[$,]m=(\d+)/.exec(hash)?.[1] ?? 0)
  const timeCost = Number(/[$,]t=(\d+)/.exec(hash)?.[1] ?? 0)
  return { memoryCost, timeCost }
}

function requesterFromContext(context: PasswordContext): Requester {
  return { source: sourceFromContext(context), isPrivileged: context.caller.kind !== 'anonymous' }
}

function toPhc({ memoryCost, timeCost, parallelism }: PasswordCost, salt: Buffer, hash: Buffer): string {
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/={1,2}$/, '')
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${text(salt)}$${text(hash)}`
}
