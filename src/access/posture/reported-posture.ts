// What is known of machines: what they reported, in memory while their identity has an API session, and the MFA of sessions.
import type { ApiSessions } from '../../authentication/sessions/api-sessions.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { MachineState, MfaState } from '../../policy/posture/machine-state.ts'
import type { Change } from '../../storage/changes.ts'
import type { Projection } from '../../storage/projection.ts'
import type { PostureSource } from '../decision.ts'
import type { RecordChange } from '../index-updates.ts'

/**
 * The memory of a machine is bounded by the limits of posture responses and by the posture checks that there are, the number
 * of machines by the identities that are signed in. It follows `ApiSessions`.
 */
export class ReportedPosture implements PostureSource, Projection {
  readonly name = 'reported posture'
  readonly #sessions: ApiSessions
  readonly #clock: Clock
  readonly #machines = new Map<string, MachineState>()
  /** API sessions as a transaction has changed them, while its changes are tried out. */
  #hypothetical: ReadonlyMap<string, MfaState> | undefined

  constructor(sessions: ApiSessions, clock: Clock) {
    this.#sessions = sessions
    this.#clock = clock
  }

  now(): Instant {
    return this.#clock.now()
  }

  findMachine(identityId: string): MachineState | undefined {
    return this.#machines.get(identityId)
  }

  listApiSessions(identityId: string, apiSessionId?: string): readonly MfaState[] {
    const sessions =
      apiSessionId === undefined ? this.#sessions.listOfIdentity(identityId) : this.#findSession(apiSessionId)
    const hypothetical = this.#hypothetical
    return hypothetical ? sessions.map((session) => hypothetical.get(session.id) ?? session) : sessions
  }

  #findSession(apiSessionId: string): readonly MfaState[] {
    const session = this.#sessions.get(apiSessionId)
    return session ? [session] : []
  }

  /** Replaces what the machines of an identity reported. It is dropped when the last API session of the identity ends. */
  setMachine(identityId: string, machine: MachineState): void {
    if (this.#sessions.listOfIdentity(identityId).length > 0) this.#machines.set(identityId, machine)
  }

  /** What `ask`, which must not wait for anything, finds as if these changes of API sessions had been applied. */
  withHypothetical<T>(changes: readonly RecordChange[], ask: () => T): T {
    const changed = changes.filter(({ resource, after }) => resource === apiSessions.plural && after !== undefined)
    if (changed.length === 0) return ask()
    const before = this.#hypothetical
    this.#hypothetical = new Map(changed.map(({ id, after }) => [id, after as unknown as MfaState]))
    try {
      return ask()
    } finally {
      this.#hypothetical = before
    }
  }

  /** Only memory holds it. */
  async rebuild(): Promise<void> {
    for (const identityId of this.#machines.keys()) this.#dropIfSignedOut(identityId)
  }

  apply(changes: readonly Change[]): void {
    for (const { resource, operation, before } of changes) {
      if (resource === apiSessions.plural && operation === 'delete') this.#dropIfSignedOut(before?.identityId as string)
    }
  }

  #dropIfSignedOut(identityId: string): void {
    if (this.#sessions.listOfIdentity(identityId).length === 0) this.#machines.delete(identityId)
  }
}

/** Without API sessions and without posture responses. */
export const unknownPosture: PostureSource = {
  findMachine: () => undefined,
  listApiSessions: () => [],
  now: () => 0,
  withHypothetical: (_changes, ask) => ask(),
}
