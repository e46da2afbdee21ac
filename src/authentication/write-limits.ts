// Rate limits for the writes of identities that do not administer, so that none of them fills the disk.
import type { Instant } from '../foundation/clock.ts'
import { errors } from '../foundation/errors.ts'
import { RateLimit } from '../foundation/rate-limit.ts'
import { sourceFromAddress } from '../storage/sources.ts'

const BURST_SECONDS = 10

interface LimitedCaller {
  readonly identityId: string
  readonly isAdmin: boolean
  readonly isPartial: boolean
}

export class WriteLimits {
  readonly #writes: RateLimit
  readonly #ownChanges: RateLimit

  /**
   * @param writesPerSecond the limit of all writing requests; a burst may be ten times as many
   * @param ownChangesPerMinute the limit of changes to the identity's own audited records, also as a burst
   * @param countSharers how many controllers share the limits
   */
  constructor(writesPerSecond: number, ownChangesPerMinute: number, countSharers = () => 1) {
    const burst = writesPerSecond * BURST_SECONDS
    this.#writes = new RateLimit({ perSecond: writesPerSecond, burst, countSharers })
    this.#ownChanges = new RateLimit({ perSecond: ownChangesPerMinute / 60, burst: ownChangesPerMinute, countSharers })
  }

  /**
   * Counts a writing request. Full sessions of administrators are not limited. The partial sessions of an identity are limited by their source, because a client that knows the
   * password alone must not use up the limit of the owner.
   * @param address the address of the request
   * @throws SERVER_TOO_MANY_REQUESTS if its identity sends too many
   */
  requireRate(
    { identityId, isAdmin, isPartial }: LimitedCaller,
    { address, isOwnChange }: { readonly address: string; readonly isOwnChange: boolean },
    now: Instant,
  ): void {
    if (isAdmin && !isPartial) return
    const key = isPartial ? `${identityId} ${sourceFromAddress(address)}` : identityId
    const retryAfterSeconds = this.#writes.take(key, now) || (isOwnChange ? this.#ownChanges.take(key, now) : 0)
    if (retryAfterSeconds === 0) return
    const cause = `identity ${identityId} writes too often`
    throw errors.SERVER_TOO_MANY_REQUESTS({ message: 'this identity changes too much' }, { cause, retryAfterSeconds })
  }
}
