// Fetches the key sets of signers and stores them: when they are due, and when a token names an unknown key.
//
// A background task asks the endpoints whose keys are due, and stores the keys in the record of the signer: they are known
// after a restart while the endpoint is down, and only its failures are in memory. A token with an unknown key waits for
// one more response; no other request waits.

import type { OutboundClient } from '../../client/outbound-client.ts'
import { externalJwtSigners, type PublicJwk } from '../../definitions/resources/external-jwt-signers.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { Signer, Signers } from './signers.ts'
import { pickPublicKeys } from './signing-keys.ts'

/** A token with an unknown key must not make the controller a source of requests. */
const MIN_UNKNOWN_KEY_INTERVAL_MS = 10_000
/** Bounds of what the headers of a response say, and the lifetime if they do not tell. */
const FRESHNESS_MS = { min: 60_000, max: 24 * 60 * 60_000, default: 10 * 60_000 } as const
/** After a failure, the wait doubles from the first to the second with each further failure. */
const RETRY_MS = { min: 10_000, max: 5 * 60_000 } as const
/** How many endpoints are asked at a time when many are due. */
const MAX_CONCURRENT_REFRESHES = 4

/** The failure of a signer's endpoint to return keys. */
export interface RefreshFailure {
  readonly message: string
  /** The first of the failures since the last success. */
  readonly since: Instant
}

/** The state of the endpoint of a signer, besides its stored keys. */
export interface RefreshStatus {
  /** When the endpoint returned keys last, in this process; undefined before. */
  readonly fetchedAt: Instant | undefined
  readonly failure: RefreshFailure | undefined
}

/** The state of one endpoint; times are monotonic. */
interface EndpointState {
  readonly endpoint: string
  lastAttemptAt: number
  dueAt: number
  failures: number
  pending: Promise<void> | undefined
  fetchedAt: Instant | undefined
  failure: RefreshFailure | undefined
}

interface KeyRefresherParts {
  readonly directory: Signers
  readonly outbound: OutboundClient
  readonly clock: Clock
  readonly log: Log
}

export class KeyRefresher {
  readonly #signers: Signers
  readonly #outbound: OutboundClient
  readonly #clock: Clock
  readonly #log: Log
  readonly #states = new Map<string, EndpointState>()

  constructor({ directory, outbound, clock, log }: KeyRefresherParts) {
    this.#signers = directory
    this.#outbound = outbound
    this.#clock = clock
    this.#log = log
  }

  getStatus(signerId: string): RefreshStatus {
    const signer = this.#signers.get(signerId)
    const state = this.#states.get(signerId)
    const isCurrent = state !== undefined && state.endpoint === signer?.jwksEndpoint
    return isCurrent ? state : { fetchedAt: undefined, failure: undefined }
  }

  /** Asks the endpoints whose keys are due. Returns when all of them have responded, or failed. */
  async refreshDue(contexts: Contexts): Promise<void> {
    const now = this.#clock.monotonic()
    const due: Signer[] = []
    for (const signer of this.#signers.all()) {
      const state = this.#getState(signer)
      if (signer.enabled && state && state.dueAt <= now) due.push(signer)
    }
    this.#forgetDeleted()
    const work = due.values()
    const workers = Array.from({ length: MAX_CONCURRENT_REFRESHES }, async () => {
      for (const signer of work) await this.#refresh(contexts, signer)
    })
    await Promise.all(workers)
  }

  /**
   * Asks the endpoint of a signer once more, because a token names a key that the signer is not known to have. Requests at the
   * same time wait for the same response; after it, none is sent for a while.
   */
  async refreshForUnknownKey(contexts: Contexts, signerId: string): Promise<void> {
    const signer = this.#signers.get(signerId)
    const state = signer && this.#getState(signer)
    if (!signer || !state) return
    const isTooEarly = this.#clock.monotonic() - state.lastAttemptAt < MIN_UNKNOWN_KEY_INTERVAL_MS
    if (state.pending === undefined && isTooEarly) return
    await this.#refresh(contexts, signer)
  }

  /** The state of the endpoint of a signer, which begins anew with another endpoint; undefined if it has none. */
  #getState({ id, jwksEndpoint }: Signer): EndpointState | undefined {
    if (jwksEndpoint === null) return undefined
    let state = this.#states.get(id)
    if (state?.endpoint !== jwksEndpoint) {
      state = {
        endpoint: jwksEndpoint,
        lastAttemptAt: Number.NEGATIVE_INFINITY,
        dueAt: Number.NEGATIVE_INFINITY,
        failures: 0,
        pending: undefined,
        fetchedAt: undefined,
        failure: undefined,
      }
      this.#states.set(id, state)
    }
    return state
  }

  #forgetDeleted(): void {
    for (const id of this.#states.keys()) if (!this.#signers.get(id)) this.#states.delete(id)
  }

  /** Never rejects: a failure is part of the status. */
  #refresh(contexts: Contexts, signer: Signer): Promise<void> {
    const state = this.#getState(signer)
    if (!state) return Promise.resolve()
    state.pending ??= this.#fetch(contexts, signer, state).finally(() => {
      state.pending = undefined
    })
    return state.pending
  }

  async #fetch(contexts: Contexts, signer: Signer, state: EndpointState): Promise<void> {
    state.lastAttemptAt = this.#clock.monotonic()
    try {
      const { value, freshForMs = FRESHNESS_MS.default } = await this.#outbound.fetchJson(state.endpoint)
      const keys = pickPublicKeys(value)
      if (!keys) throw new Error('the response is not a key set')
      if (keys.length === 0) throw new Error('the key set has no key that tokens can be verified by')
      await this.#store(contexts, signer, state, keys)
      const waitMs = Math.min(Math.max(freshForMs, FRESHNESS_MS.min), FRESHNESS_MS.max)
      state.dueAt = this.#clock.monotonic() + waitMs
      state.failures = 0
      state.fetchedAt = this.#clock.now()
      if (state.failure) this.#log.info({ signer: signer.name }, 'the key set of a signer can be fetched again')
      state.failure = undefined
    } catch (error) {
      this.#noteFailure(signer, state, error as Error)
    }
  }

  /** Logs the first failure only: the status shows that it lasts. */
  #noteFailure(signer: Signer, state: EndpointState, error: Error): void {
    state.dueAt = this.#clock.monotonic() + Math.min(RETRY_MS.min * 2 ** state.failures, RETRY_MS.max)
    state.failures += 1
    const { message } = error
    if (!state.failure) {
      const fields = { signer: signer.name, endpoint: state.endpoint, err: error }
      this.#log.warn(fields, 'the key set of a signer cannot be fetched; its known keys are used on')
    }
    state.failure = { message, since: state.failure?.since ?? this.#clock.now() }
  }

  /** Stores keys if they differ from the stored ones. A record that has another endpoint by now keeps its own. */
  async #store(
    contexts: Contexts,
    { id, name }: Signer,
    { endpoint }: EndpointState,
    keys: readonly PublicJwk[],
  ): Promise<void> {
    const fetchedAt = this.#clock.now()
    const storedKeys = this.#signers.get(id)?.fetchedKeys?.keys
    if (JSON.stringify(storedKeys) === JSON.stringify(keys)) return
    await contexts.create({ kind: 'system' }).write(async (tx) => {
      const signer = await find(tx, externalJwtSigners, id)
      if (signer?.jwksEndpoint !== endpoint) return
      const fetchedKeys = { keys, fetchedAt }
      const own = tx.db.updateTable('external_jwt_signers').where('id', '=', id)
      await own.set({ fetchedKeys: JSON.stringify(fetchedKeys) }).execute()
      // `updatedAt` stays, because no administrator changed the record.
      const after = { ...signer, fetchedKeys }
      const change = { operation: 'update', audit: 'none', resource: externalJwtSigners.plural, id } as const
      tx.record({ ...change, at: tx.clock.now(), before: signer, after })
    })
    const keyIds = keys.map(({ kid }) => kid)
    this.#log.info({ signer: name, keyIds }, 'the keys of a signer have changed')
  }
}
