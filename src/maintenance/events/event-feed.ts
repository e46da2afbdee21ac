// The feed of events for watchers: what the audit records, from any cursor on, and what happens in the network.
//
// Each watcher first reads the audit from its cursor to the end, page by page, and then joins those that follow what happens
// now, for all of which the audit is read once. Without a watcher nothing is read or kept.
import { setImmediate } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { isReadByRecord } from '../../definitions/permissions/readable-records.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import type { EventSource } from '../../definitions/resources/event-types.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { tokens } from '../../definitions/resources/tokens.ts'
import type { Clock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Log } from '../../foundation/log.ts'
import type { ChainedRecord } from '../../storage/audit/audit-chain.ts'
import { findNewestAuditRecord, findOldestAuditRecord, readAuditAfter } from '../../storage/audit/audit-pages.ts'
import { findAuditRecord } from '../../storage/audit/audit-records.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import { findRecordStates } from './audited-record.ts'
import {
  AUDIT_BEGIN,
  type AuditPlace,
  type EventCursor,
  formatCursor,
  NO_RUN,
  parseCursor,
  toAuditPlace,
} from './cursor.ts'
import { type NetworkEvent, type StreamedEvent, toAuditEvent, toNetworkEvent } from './event.ts'
import { EventMessage, type MessageForm, serverSentForm } from './event-message.ts'
import { NetworkRing, type RingPlace } from './network-ring.ts'
import { type EventSelection, Watcher, type WatcherRight } from './watcher.ts'

const MAX_WATCHERS = 1_000
const MAX_WATCHERS_OF_IDENTITY = 20

// A record may have some 60 KB.
const PAGE = 50

// Of the events of the network that are kept, as many are sent without a look at whether the watcher reads.
const MAX_AT_ONCE = 10

// How long events of the network are kept after the last watcher has left, so that it may return.
const LINGER_MS = 5 * 60_000

/** Changes of these may end a session or a right. */
const RIGHTS: ReadonlySet<string> = new Set([apiSessions, identities, authPolicies, tokens].map(({ plural }) => plural))

interface EventFeedParts {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly log: Log
}

export class EventFeed implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'streams of events'
  readonly #parts: EventFeedParts
  readonly #watchers = new Set<Watcher>()
  /** Of these, the watchers that follow what happens now. */
  readonly #live = new Set<Watcher>()
  /** Up to where the audit was sent to them. */
  #tail: AuditPlace = AUDIT_BEGIN
  /** Undefined while no watcher needs it. */
  #ring: NetworkRing | undefined
  /** When there was a watcher last, by the monotonic clock. */
  #watchedAt = 0
  #isFollowing = false
  /** The audit may have records that were not read yet. */
  #isBehind = false
  #isClosed = false

  constructor(parts: EventFeedParts) {
    this.#parts = parts
  }

  /**
   * Begins a stream of events from a cursor on, or from now on.
   * @throws SERVER_TOO_MANY_REQUESTS if there are too many watchers, COULD_NOT_VALIDATE for a text that is not a cursor
   */
  async watch(
    right: WatcherRight,
    selection: EventSelection,
    since: string | undefined,
    form: MessageForm = serverSentForm,
  ): Promise<Watcher['stream']> {
    const cursor = since === undefined ? undefined : parseCursor(since)
    this.#requireCapacity(right.ownerId)
    this.#ring ??= new NetworkRing()
    const watcher = new Watcher(right, selection, AUDIT_BEGIN, form)
    this.#watchers.add(watcher)
    watcher.stream.once('close', () => this.#leave(watcher))
    try {
      const { place, isWhole } = await this.#findBegin(cursor)
      watcher.place = place
      this.#begin(watcher, cursor, isWhole)
      return watcher.stream
    } catch (error) {
      watcher.stream.destroy()
      throw error
    }
  }

  /** Whether anything is watched, so that events of the network have to be described. */
  get isWatched(): boolean {
    return this.#ring !== undefined
  }

  /** How many streams are open. */
  get watcherCount(): number {
    return this.#watchers.size
  }

  /** Adds an event of the network. Nothing happens if it is not watched; ask `isWatched` before describing many. */
  add(happened: NetworkEvent): void {
    if (!this.#ring) return
    const { event } = this.#ring.add(toNetworkEvent(happened, this.#parts.clock.now()))
    this.#broadcast(this.#live, event)
  }

  // ---- commits --------------------------------------------------------------------------------------------------------

  apply({ changes, tables }: Commit): void {
    if (this.#watchers.size === 0) return
    if (changes.some(({ resource }) => RIGHTS.has(resource)))
      for (const watcher of this.#watchers) watcher.requireRight()
    if (tables.includes('audit_records')) this.#follow()
  }

  async restart(): Promise<void> {
    this.#follow()
  }

  // ---- upkeep ---------------------------------------------------------------------------------------------------------

  /** Keeps connections open, cuts watchers whose session or right has ended, and drops what is not needed any more. */
  beat(): void {
    const now = this.#parts.clock.monotonic()
    if (this.#watchers.size > 0) this.#watchedAt = now
    else if (this.#ring && now - this.#watchedAt > LINGER_MS) this.#ring = undefined
    if (this.#live.size === 0) return
    const heartbeat = new EventMessage(this.#cursor())
    for (const watcher of this.#live) watcher.sendHeartbeat(heartbeat)
  }

  /** Ends all streams, and begins no other. */
  close(): void {
    this.#isClosed = true
    for (const watcher of this.#watchers) watcher.end()
  }

  // ---- the beginning of a stream --------------------------------------------------------------------------------------

  #requireCapacity(ownerId: string | null): void {
    // Webhooks are few, and clients must not keep them from their events.
    if (ownerId === null) return
    let [own, all] = [0, 0]
    for (const { right } of this.#watchers) {
      if (right.ownerId !== null) all++
      if (right.ownerId === ownerId) own++
    }
    const message =
      own >= MAX_WATCHERS_OF_IDENTITY
        ? `an identity may watch events over ${MAX_WATCHERS_OF_IDENTITY} connections`
        : all >= MAX_WATCHERS
          ? `events may be watched over ${MAX_WATCHERS} connections`
          : undefined
    if (message !== undefined) throw errors.SERVER_TOO_MANY_REQUESTS({ message })
  }

  /** Finds where the audit is read from, and whether that is everything since the cursor. */
  async #findBegin(cursor: EventCursor | undefined): Promise<{ place: AuditPlace; isWhole: boolean }> {
    const { db } = this.#parts
    const newest = await findNewestAuditRecord(db)
    const end = newest ? toAuditPlace(newest) : AUDIT_BEGIN
    if (!cursor) return { place: end, isWhole: true }
    const oldest = await findOldestAuditRecord(db)
    if (!oldest) return { place: AUDIT_BEGIN, isWhole: cursor.n === 0 }
    if (cursor.n < oldest.n) {
      // The records in between were pruned, if there are any.
      const { n, previousHash } = oldest
      const place = n === 1 ? AUDIT_BEGIN : toAuditPlace({ n: n - 1, hash: previousHash })
      return { place, isWhole: place.n === cursor.n && place.mark === cursor.mark }
    }
    const record = await findAuditRecord({ db }, cursor.n)
    if (record && toAuditPlace(record).mark === cursor.mark) return { place: cursor, isWhole: true }
    // The audit is another one since: a backup was restored.
    return { place: end, isWhole: false }
  }

  #begin(watcher: Watcher, cursor: EventCursor | undefined, isWhole: boolean): void {
    const ring = this.#requireRing()
    const isKept = cursor === undefined || cursor.run === NO_RUN || ring.hasAllSince(cursor)
    const from = cursor && ring.hasAllSince(cursor) ? { run: cursor.run, sequence: cursor.sequence } : ring.place
    const missed: EventSource[] = [
      ...(isWhole ? [] : (['audit'] as const)),
      ...(isKept || !watcher.selectsNetwork ? [] : (['network'] as const)),
    ]
    const text = formatCursor({ ...watcher.place, ...from })
    if (missed.length > 0) watcher.sendGap(missed, text)
    else watcher.sendHeartbeat(new EventMessage(text))
    if (this.#isClosed) watcher.end()
    this.#catchUp(watcher, from).catch((error: unknown) => {
      this.#parts.log.error({ err: error }, 'events could not be read from the audit')
      watcher.stream.destroy()
    })
  }

  /** Sends what happened since, as fast as the watcher reads, and then lets it follow what happens now. */
  async #catchUp(watcher: Watcher, begin: RingPlace): Promise<void> {
    let from = begin
    for (;;) {
      const records = await readAuditAfter(this.#parts.db, watcher.place.n, PAGE)
      for (const record of records) {
        await watcher.drain()
        if (watcher.hasEnded) return
        watcher.place = toAuditPlace(record)
        const event = isStateNeeded(record, [watcher]) ? await this.#readEvent(record) : toAuditEvent(record)
        watcher.send(event, () => toMessage(event, { ...watcher.place, ...from }))
      }
      if (records.length < PAGE) from = await this.#sendKept(watcher, from)
      if (watcher.hasEnded) return
      // From here to the end nothing is awaited, so that nothing happens in between.
      const isAtEnd = records.length < PAGE && this.#requireRing().listSince(from.sequence).length <= MAX_AT_ONCE
      if (isAtEnd && (this.#live.size === 0 || watcher.place.n >= this.#tail.n)) break
      // A watcher that selects little takes nothing that could be waited for.
      await setImmediate()
    }
    this.#join(watcher, from)
  }

  /** Sends most of the events of the network that are kept. Returns the place behind the last of them. */
  async #sendKept(watcher: Watcher, from: RingPlace): Promise<RingPlace> {
    const { run } = this.#requireRing()
    let { sequence } = this.#tellOfLost(watcher, from)
    for (const numbered of this.#requireRing().listSince(sequence).slice(0, -MAX_AT_ONCE)) {
      await watcher.drain()
      if (watcher.hasEnded) break
      sequence = numbered.sequence
      watcher.send(numbered.event, () => toMessage(numbered.event, { ...watcher.place, run, sequence }))
    }
    return { run, sequence }
  }

  /** Tells a watcher that events after a place are not kept any more. Returns the place behind them. */
  #tellOfLost(watcher: Watcher, from: RingPlace): RingPlace {
    const ring = this.#requireRing()
    if (ring.hasAllSince(from)) return from
    const first = { run: ring.run, sequence: ring.firstSequence - 1 }
    if (watcher.selectsNetwork) watcher.sendGap(['network'], formatCursor({ ...watcher.place, ...first }))
    return first
  }

  #join(watcher: Watcher, from: RingPlace): void {
    const ring = this.#requireRing()
    if (this.#live.size === 0) this.#tail = watcher.place
    for (const { sequence, event } of ring.listSince(this.#tellOfLost(watcher, from).sequence))
      watcher.send(event, () => toMessage(event, { ...watcher.place, run: ring.run, sequence }))
    watcher.sendHeartbeat(new EventMessage(formatCursor({ ...watcher.place, ...ring.place })))
    if (watcher.hasEnded) return
    this.#live.add(watcher)
    this.#follow()
  }

  #leave(watcher: Watcher): void {
    this.#watchers.delete(watcher)
    this.#live.delete(watcher)
    this.#watchedAt = this.#parts.clock.monotonic()
  }

  // ---- what happens now -----------------------------------------------------------------------------------------------

  #follow(): void {
    this.#isBehind = true
    if (!this.#isFollowing) void this.#readTail()
  }

  async #readTail(): Promise<void> {
    this.#isFollowing = true
    try {
      while (this.#isBehind && this.#live.size > 0) {
        this.#isBehind = false
        const records = await readAuditAfter(this.#parts.db, this.#tail.n, PAGE)
        for (const record of records) {
          const event = isStateNeeded(record, this.#live) ? await this.#readEvent(record) : toAuditEvent(record)
          // From here nothing is awaited: the cursor names the record only once it is sent.
          this.#tail = toAuditPlace(record)
          const followers = [...this.#live].filter(({ place }) => place.n < record.n)
          this.#broadcast(followers, event)
        }
        if (records.length < PAGE) continue
        this.#isBehind = true
        await setImmediate()
      }
    } catch (error) {
      this.#parts.log.error({ err: error }, 'events could not be read from the audit')
      // They return with their cursors.
      for (const watcher of this.#live) watcher.stream.destroy()
    } finally {
      this.#isFollowing = false
    }
  }

  async #readEvent(record: ChainedRecord): Promise<StreamedEvent> {
    return toAuditEvent(record, await findRecordStates(this.#parts.db, record))
  }

  /** Makes one message of an event, for all watchers that select it. */
  #broadcast(watchers: Iterable<Watcher>, event: StreamedEvent): void {
    let message: EventMessage | undefined
    for (const watcher of watchers)
      watcher.send(event, () => {
        message ??= toMessage(event, { ...this.#tail, ...this.#requireRing().place })
        return message
      })
  }

  #cursor(): string {
    return formatCursor({ ...this.#tail, ...this.#requireRing().place })
  }

  /** The ring is there as long as there is a watcher. */
  #requireRing(): NetworkRing {
    this.#ring ??= new NetworkRing()
    return this.#ring
  }
}

/** Whether the record that an event is about decides whether one of the watchers may read it. */
function isStateNeeded({ resource }: ChainedRecord, watchers: Iterable<Watcher>): boolean {
  for (const watcher of watchers) {
    const { knownRights } = watcher
    if (knownRights && isReadByRecord(knownRights, resource)) return true
  }
  return false
}

function toMessage({ type, data }: StreamedEvent, cursor: EventCursor): EventMessage {
  return new EventMessage(formatCursor(cursor), type, data)
}
