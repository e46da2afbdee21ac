// Asks routers whether the terminators that they made are still there, and removes those that are not.
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'
import type { TerminatorState } from '../routers/router-connection.ts'
import type { LiveTerminator, TerminatorDirectory } from './terminator-directory.ts'

// A router may still be setting up a terminator that is newer.
const MIN_AGE_MS = 5_000
const TICK_MS = 30_000
// A question without a response for this long is asked again.
const RESPONSE_TIMEOUT_MS = 180_000
const TERMINATORS_PER_MESSAGE = 500

/** A question that a router has not responded to. */
interface TerminatorQuestion {
  readonly terminator: LiveTerminator
  /** Distinguishes the responses to repeated questions about one terminator. */
  readonly marker: bigint
  /** By the monotonic clock. */
  readonly askedAt: number
}

/** The validated terminators of one connection. A terminator that changes is another object, and is asked about again. */
interface ValidationProgress {
  readonly confirmed: WeakSet<LiveTerminator>
  readonly questions: Map<string, TerminatorQuestion>
}

interface TerminatorValidationParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly directory: TerminatorDirectory
  /** Whether this controller is the one of several that asks. */
  readonly isLeading: () => boolean
}

export class TerminatorValidation {
  readonly #clock: Clock
  readonly #connected: ConnectedRouters
  readonly #directory: TerminatorDirectory
  readonly #progress = new WeakMap<ConnectedRouter, ValidationProgress>()
  readonly #isLeading: () => boolean
  #lastMarker = 0n
  #lastTickAt: number

  constructor({ clock, connected, directory, isLeading }: TerminatorValidationParts) {
    this.#isLeading = isLeading
    this.#clock = clock
    this.#connected = connected
    this.#directory = directory
    this.#lastTickAt = clock.monotonic()
  }

  /** Asks a router about its terminators, those that are new excepted. Called when it connects, and then by the clock. */
  ask(router: ConnectedRouter): void {
    if (!this.#isLeading()) return
    const progress = this.#getProgress(router)
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()]
    const due: TerminatorQuestion[] = []
    for (const terminator of this.#directory.listOfRouter(router.id)) {
      if (!isQuestionDue(progress, terminator, now, monotonic)) continue
      const question = { terminator, marker: ++this.#lastMarker, askedAt: monotonic }
      progress.questions.set(terminator.id, question)
      due.push(question)
    }
    for (const id of progress.questions.keys()) if (!this.#directory.get(id)) progress.questions.delete(id)
    for (let at = 0; at < due.length; at += TERMINATORS_PER_MESSAGE) {
      const questions = due.slice(at, at + TERMINATORS_PER_MESSAGE)
      router.connection.validateTerminators(
        questions.map(({ terminator: { id, binding, address, createdAt }, marker }) => ({
          ...{ id, binding, address, marker },
          isNew: now - createdAt < monotonic - router.connectedAt,
        })),
      )
    }
  }

  /** Asks every edge router about its terminators that are not known to be there, every thirty seconds. */
  tick(): void {
    const now = this.#clock.monotonic()
    if (now - this.#lastTickAt < TICK_MS) return
    this.#lastTickAt = now
    for (const router of this.#connected.listEdgeRouters()) this.ask(router)
  }

  /** Notes that a router has asked for a terminator again, so that its response to an earlier question does not count. */
  confirm(router: ConnectedRouter, id: string): void {
    this.#progress.get(router)?.questions.delete(id)
  }

  /** Follows a response. Returns the ids of the terminators that have to be removed, because they are not there. */
  receive(router: ConnectedRouter, states: Iterable<TerminatorState>): string[] {
    const { confirmed, questions } = this.#getProgress(router)
    const invalidIds: string[] = []
    for (const { id, isValid, marker } of states) {
      const question = questions.get(id)
      if (!question || (marker !== 0n && marker !== question.marker)) continue
      questions.delete(id)
      if (isValid) confirmed.add(question.terminator)
      else if (this.#directory.get(id) === question.terminator) invalidIds.push(id)
    }
    return invalidIds
  }

  /** The questions that a router has not responded to; undefined if there are none. `lastAskedAt` is by the monotonic clock. */
  describePending(router: ConnectedRouter): { terminatorIds: string[]; lastAskedAt: number } | undefined {
    const questions = this.#progress.get(router)?.questions
    if (!questions || questions.size === 0) return undefined
    let lastAskedAt = 0
    for (const { askedAt } of questions.values()) lastAskedAt = Math.max(lastAskedAt, askedAt)
    return { terminatorIds: [...questions.keys()], lastAskedAt }
  }

  #getProgress(router: ConnectedRouter): ValidationProgress {
    let progress = this.#progress.get(router)
    if (!progress) {
      progress = { confirmed: new WeakSet(), questions: new Map() }
      this.#progress.set(router, progress)
    }
    return progress
  }
}

/** A record that an administrator made is never deleted because its router cannot reach it at this moment. */
function isQuestionDue(
  { confirmed, questions }: ValidationProgress,
  terminator: LiveTerminator,
  now: Instant,
  monotonic: number,
): boolean {
  if (!terminator.isSystem || confirmed.has(terminator) || now - terminator.createdAt < MIN_AGE_MS) return false
  const question = questions.get(terminator.id)
  return question === undefined || monotonic - question.askedAt >= RESPONSE_TIMEOUT_MS
}
