// Creates the contexts that code runs with on behalf of a caller, and guards each of their transactions.
import type { Clock } from '../../foundation/clock.ts'
import type { AuditOrigin, Store } from '../store.ts'
import { type AuditEvent, toChange } from './changes.ts'
import { type Caller, type Context, type IdentityCaller, type Origin, toActor, type WriteContext } from './context.ts'

const BACKGROUND: Origin = { requestId: 'background', address: undefined }

/** A check that every transaction must pass. */
export interface TransactionGuard {
  /** Runs before the changes. @throws if they are not permitted */
  before?(tx: WriteContext): void
  /** Runs after the changes: refuses them, or adds the changes that follow from them. */
  after?(tx: WriteContext): Promise<void>
}

export class Contexts {
  readonly store: Store
  readonly clock: Clock
  readonly guards: readonly TransactionGuard[]

  /** @param guards in the order in which they run */
  constructor(store: Store, clock: Clock, guards: readonly TransactionGuard[]) {
    this.store = store
    this.clock = clock
    this.guards = guards
  }

  /**
   * Creates the context of a caller.
   * @param isDryRun whether its transactions are rolled back after they have passed every check
   */
  create(caller: Caller, origin: Origin = BACKGROUND, isDryRun = false): Context {
    const context = new CallerContext(this, caller, origin)
    return isDryRun ? new DryRunContext(context) : context
  }

  /** Writes an audit record of what a caller did before. Its rights are not checked again, because nothing changes now. */
  recordEvent(caller: Caller, origin: Origin, event: AuditEvent): Promise<void> {
    return this.create(toActor(caller), origin).write(async (tx) =>
      tx.record(toChange({ ...event, audit: 'event', at: tx.clock.now(), isAuditOnly: true })),
    )
  }
}

/** Ends a transaction of a dry run, so that it is rolled back alone: nothing is stored, audited or announced. */
class DryRunEnd extends Error {}

/** A context whose transactions are complete, with the checks after them, and are then rolled back. */
class DryRunContext implements Context {
  readonly #inner: CallerContext

  constructor(inner: CallerContext) {
    this.#inner = inner
  }

  get db() {
    return this.#inner.db
  }

  get clock() {
    return this.#inner.clock
  }

  get caller() {
    return this.#inner.caller
  }

  get origin() {
    return this.#inner.origin
  }

  async write<T>(body: (tx: WriteContext) => Promise<T>): Promise<T> {
    let result: { readonly value: T } | undefined
    const end = (value: T) => {
      result = { value }
      throw new DryRunEnd()
    }
    try {
      return await this.#inner.write(body, end)
    } catch (error) {
      if (error instanceof DryRunEnd && result) return result.value
      throw error
    }
  }
}

class CallerContext implements Context {
  readonly #contexts: Contexts
  readonly caller: Caller
  readonly origin: Origin

  constructor(contexts: Contexts, caller: Caller, origin: Origin) {
    this.#contexts = contexts
    this.caller = caller
    this.origin = origin
  }

  get db() {
    return this.#contexts.store.db
  }

  get clock() {
    return this.#contexts.clock
  }

  /** @param end called with the result after every check; rolls the transaction back by throwing */
  write<T>(body: (tx: WriteContext) => Promise<T>, end?: (result: T) => never): Promise<T> {
    const { caller, origin } = this
    const { store, clock, guards } = this.#contexts
    return store.write(
      async (scope) => {
        const tx: WriteContext = { clock, caller, origin, ...scope }
        for (const guard of guards) guard.before?.(tx)
        const result = await body(tx)
        for (const guard of guards) await guard.after?.(tx)
        end?.(result)
        return result
      },
      toAuditOrigin(caller, origin),
    )
  }
}

function toAuditOrigin(caller: Caller, { requestId, address }: Origin): AuditOrigin {
  const isPrivileged = caller.kind === 'identity' ? caller.isAdmin : caller.kind !== 'anonymous'
  return { actor: toAuditActor(caller), requestId, address: address ?? null, isPrivileged }
}

function toActorName({ identityName, token }: IdentityCaller): string {
  return token ? `${identityName} (token ${token.name})` : identityName
}

function toAuditActor(caller: Caller): AuditOrigin['actor'] {
  switch (caller.kind) {
    case 'identity':
      return { kind: 'identity', id: caller.identityId, name: toActorName(caller) }
    case 'local-operator':
      return { kind: 'local', id: null, name: caller.osUser }
    default:
      return { kind: caller.kind, id: null, name: null }
  }
}
