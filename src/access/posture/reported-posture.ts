// The posture of machines: what they reported, and the MFA of API sessions.
//
// Operating system, domain, addresses and processes belong to the identity (`machine_states`). They outlive its API sessions: a
// client of OpenZiti's Go SDK that signs in again reports only what has changed since. When MFA was passed, and when the
// machine woke or was unlocked, are columns of the API session.
import type { Kysely } from 'kysely'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import {
  fromStoredMachineState,
  type MachineState,
  type MfaState,
  type StoredMachineState,
  toStoredMachineState,
} from '../../policy/posture/machine-state.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit, RecordChange } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import type { PostureSource } from '../decision.ts'

/** Machines and API sessions as a transaction has changed them. */
interface Hypothetical {
  readonly machines: ReadonlyMap<string, MachineState>
  readonly sessions: ReadonlyMap<string, MfaState>
}

/**
 * The state of a machine is bounded by the limits of posture responses and by the posture checks that there are, the number
 * of machines by the identities. It follows `ApiSessions`.
 */
export class ReportedPosture implements PostureSource, DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'reported posture'
  readonly #sessions: ApiSessions
  readonly #clock: Clock
  #machines = new Map<string, MachineState>()
  /** The changes of a transaction, while they are tried out. */
  #hypothetical: Hypothetical | undefined

  constructor(sessions: ApiSessions, clock: Clock) {
    this.#sessions = sessions
    this.#clock = clock
  }

  now(): Instant {
    return this.#clock.now()
  }

  findMachine(identityId: string): MachineState | undefined {
    return this.#hypothetical?.machines.get(identityId) ?? this.#machines.get(identityId)
  }

  /** The report of the machines of an identity, as a transaction sees it: with those of its commit that come before it. */
  findNewest({ uncommitted }: Pick<WriteContext, 'uncommitted'>, identityId: string): MachineState | undefined {
    let newest = this.#machines.get(identityId)
    for (const { resource, operation, id, after } of uncommitted.all) {
      if (resource !== 'machines' || id !== identityId) continue
      if (after) newest = fromStoredMachineState(after)
      else if (operation === 'delete') newest = undefined
    }
    return newest
  }

  listApiSessions(identityId: string, apiSessionId?: string): readonly MfaState[] {
    const sessions =
      apiSessionId === undefined ? this.#sessions.listOfIdentity(identityId) : this.#findSession(apiSessionId)
    const hypothetical = this.#hypothetical?.sessions
    return hypothetical ? sessions.map((session) => hypothetical.get(session.id) ?? session) : sessions
  }

  reportsToRouters(apiSessionId: string): boolean {
    return this.#sessions.get(apiSessionId)?.clientId != null
  }

  #findSession(apiSessionId: string): readonly MfaState[] {
    const session = this.#sessions.get(apiSessionId)
    return session ? [session] : []
  }

  /** The result of `ask` as if these changes of API sessions and machines had been applied. `ask` must not wait for anything. */
  withHypothetical<T>(changes: readonly RecordChange[], ask: () => T): T {
    const sessions = new Map<string, MfaState>()
    const machines = new Map<string, MachineState>()
    for (const { resource, id, after } of changes) {
      if (resource === 'api-sessions' && after) sessions.set(id, after)
      if (resource === 'machines' && after) machines.set(id, fromStoredMachineState(after))
    }
    if (sessions.size + machines.size === 0) return ask()
    const before = this.#hypothetical
    this.#hypothetical = { machines, sessions }
    try {
      return ask()
    } finally {
      this.#hypothetical = before
    }
  }

  // ---- changes --------------------------------------------------------------------------------------------------------

  /** Replaces what the machines of an identity reported. */
  async store(tx: WriteContext, identityId: string, machine: MachineState): Promise<void> {
    const previous = this.findNewest(tx, identityId)
    const before = previous && toStoredMachineState(previous)
    const after = toStoredMachineState(machine)
    const state = JSON.stringify(after)
    await tx.db
      .insertInto('machine_states')
      .values({ identityId, state })
      .onConflict((conflict) => conflict.column('identityId').doUpdateSet({ state }))
      .execute()
    tx.record({
      operation: 'update',
      audit: 'none',
      resource: 'machines',
      id: identityId,
      at: this.#clock.now(),
      before,
      after,
    })
  }

  /** Notes that machines reported the same again, at a later time: that time alone is not worth a commit. */
  touch(identityId: string, machine: MachineState): void {
    if (this.#machines.has(identityId)) this.#machines.set(identityId, machine)
  }

  /** Removes what the machines of those identities reported that a transaction deletes. */
  async removeDeleted(tx: WriteContext): Promise<void> {
    const deleted = tx.uncommitted.own.filter(
      ({ resource, operation }) => resource === 'identities' && operation === 'delete',
    )
    for (const { id } of deleted) {
      if (!this.findNewest(tx, id)) continue
      await tx.db.deleteFrom('machine_states').where('identityId', '=', id).execute()
      tx.record({ operation: 'delete', audit: 'none', resource: 'machines', id, at: this.#clock.now() })
    }
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('machine_states').selectAll().execute()
    this.#machines = new Map(
      rows.map(({ identityId, state }) => [
        identityId,
        fromStoredMachineState(JSON.parse(state) as StoredMachineState),
      ]),
    )
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource !== 'machines') continue
      if (after) this.#machines.set(id, fromStoredMachineState(after))
      else if (operation === 'delete') this.#machines.delete(id)
    }
  }
}

/** Without API sessions and without posture responses. */
export const unknownPosture: PostureSource = {
  findMachine: () => undefined,
  listApiSessions: () => [],
  reportsToRouters: () => false,
  now: () => 0,
  withHypothetical: (_changes, ask) => ask(),
}
