// The log of what changed the data model of routers: one set of events for each commit that did, in the transaction of the commit.
//
// A router that knows the model at an index continues with the sets after it, also after a restart of the controller. The log is bounded:
// a router that is behind its begin receives everything, as all do after a commit that changed more than a set may hold.
import type { Kysely, Transaction } from 'kysely'
import { beginsSigning } from '../../access/sessions/session-tokens.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { CommitRecorder } from '../../storage/store.ts'
import type { Change, Commit } from '../../storage/transactions/changes.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { concernsKeys } from '../routers/public-keys.ts'
import { TooManyChangesError, toModelEvents } from './change-sets.ts'
import { type MembershipParts, TooManyMembersError } from './memberships.ts'
import type { ModelChangeSet, ModelEvent } from './model-events.ts'
import { isOfModel } from './net-changes.ts'

/** The bounds of the log. */
export interface LogLimits {
  readonly sets: number
  readonly ageMs: number
  readonly bytes: number
  /** Of one set as it is stored; on its way to routers it takes about a third. */
  readonly setBytes: number
}

const LOG_LIMITS: LogLimits = {
  sets: 10_000,
  ageMs: 24 * 60 * 60_000,
  bytes: 64 * 1024 * 1024,
  setBytes: 512 * 1024,
}

// Sets that are not needed any more are removed with every one of so many that are added, twice as many at a time: no commit pays for all.
const REMOVE_AFTER = 10

// How many sets are read at a time for routers that are behind.
const READ_AT_ONCE = 25

// The last sets stay in memory, for the routers that follow.
const MAX_RECENT = 100
const MAX_RECENT_BYTES = 4 * 1024 * 1024

interface ModelLogParts {
  readonly access: MembershipParts['access']
  readonly clock: Clock
  readonly log: Log
  readonly db: Kysely<Database>
  /** Whether a router that follows the model has ever connected: until then no router knows an index, and nothing is logged. */
  isNeeded(): boolean
  /** The ids of public keys that no router may trust any more after these changes, which memory does not know yet. */
  findRemovedKeys(changes: readonly Change[]): readonly string[]
  readonly limits?: LogLimits
}

type Row = Pick<Commit, 'position' | 'at'> & { readonly previous: number; readonly size: number }

/** A row, and what it is of; without a set, routers receive everything. */
interface Entry extends Row {
  readonly set?: ModelChangeSet
}

/** The rows of this log that a commit adds and removes. */
interface Recorded {
  readonly added: Entry
  readonly removed: readonly Row[]
}

const insertRow = prepareQuery(
  (db, position: number, previous: number, at: number, size: number, events: string | null) =>
    db.insertInto('model_changes').values({ position, previous, at, size, events }),
)

export class ModelLog implements CommitRecorder {
  readonly name = 'model log'
  readonly #parts: ModelLogParts
  readonly #limits: LogLimits
  /** Names the line of commits: on another one, an index means something else. */
  #timeline = ''
  /** The position of the last commit that changed the model. */
  #head = 0
  #initialHead = 0
  /** Sets lead from here to the head. */
  #base = 0
  #count = 0
  #bytes = 0
  #addedSinceRemoval = 0
  #recent: Entry[] = []
  #recentBytes = 0
  /** The sets after an index that were read last. */
  #read: { readonly after: number; readonly sets: readonly ModelChangeSet[] } | undefined

  constructor(parts: ModelLogParts) {
    this.#parts = parts
    this.#limits = parts.limits ?? LOG_LIMITS
  }

  get timeline(): string {
    return this.#timeline
  }

  get head(): number {
    return this.#head
  }

  /** The head while nothing was logged. */
  get initialHead(): number {
    return this.#initialHead
  }

  /** Whether the last commit that changed the model is told as a set: otherwise no earlier model leads to it. */
  get hasSets(): boolean {
    return this.#base < this.#head
  }

  /** Begins with what is stored. */
  async load(db: Kysely<Database>): Promise<void> {
    const { position, timeline } = await db.selectFrom('commit_position').selectAll().executeTakeFirstOrThrow()
    const rows = db.selectFrom('model_changes')
    const cut = await rows
      .select((eb) => eb.fn.max('position').as('position'))
      .where('events', 'is', null)
      .execute()
    const all = await rows
      .select(({ fn }) => [fn.max('position').as('head'), fn.min('previous').as('first')])
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.sum<number | null>('size').as('bytes')])
      .executeTakeFirstOrThrow()
    this.#timeline = timeline
    this.#initialHead = position
    this.#head = all.head ?? position
    this.#base = Math.max(cut[0]?.position ?? 0, all.first ?? position)
    this.#count = all.count
    this.#bytes = all.bytes ?? 0
    this.#recent = []
    this.#recentBytes = 0
    this.#read = undefined
  }

  // ---- reading --------------------------------------------------------------------------------------------------------

  /** Sets that follow an index, in order: not all, but at least one, unless the log does not lead on from there. */
  async readAfter(index: number): Promise<readonly ModelChangeSet[]> {
    if (index < this.#base || index >= this.#head) return []
    const oldestAt = this.#parts.clock.now() - this.#limits.ageMs
    const nth = this.#recent.findLastIndex(({ previous, at }) => previous === index && at >= oldestAt)
    if (nth >= 0) return this.#recent.slice(nth).flatMap(({ set }) => set ?? [])
    if (this.#read?.after !== index) this.#read = { after: index, sets: await this.#readStored(index) }
    return this.#read.sets
  }

  async #readStored(index: number): Promise<ModelChangeSet[]> {
    const { db, clock } = this.#parts
    const rows = await db
      .selectFrom('model_changes')
      .selectAll()
      .where('position', '>', index)
      .where('at', '>=', clock.now() - this.#limits.ageMs)
      .orderBy('position')
      .limit(READ_AT_ONCE)
      .execute()
    if (rows[0]?.previous !== index) return []
    return rows.flatMap(({ position, previous, events }) => {
      if (events === null) return []
      return { index: position, previousIndex: previous, events: JSON.parse(events) as ModelEvent[] }
    })
  }

  // ---- writing --------------------------------------------------------------------------------------------------------

  concerns(changes: readonly Change[]): boolean {
    if (changes.some(beginsSigning)) return true
    if (!this.#parts.isNeeded()) return false
    return changes.some((change) => isOfModel(change) || concernsKeys(change))
  }

  async record(
    { position, at, changes }: Omit<Commit, 'tables'>,
    db: Transaction<Database>,
  ): Promise<Recorded | undefined> {
    // The head is to be the same at every controller, and after each of its starts, also before the first change: so the log begins with
    // a row that no model leads to.
    const events = changes.some(beginsSigning) ? undefined : await this.#toEvents(changes, db)
    if (events?.length === 0) return undefined
    const text = events ? JSON.stringify(events) : ''
    const previous = this.#head
    const isSet = events !== undefined && text.length <= this.#limits.setBytes
    const size = isSet ? text.length : 0
    await insertRow(db, position, previous, at, size, isSet ? text : null)
    const set = isSet ? { set: { index: position, previousIndex: previous, events } } : {}
    const added = { position, previous, at, size, ...set }
    return { added, removed: await this.#remove(db, added, isSet ? this.#base : position) }
  }

  /** Undefined if they are too many, or cannot be told: that does not hinder the change. */
  async #toEvents(changes: readonly Change[], db: Transaction<Database>): Promise<ModelEvent[] | undefined> {
    const { access, log, findRemovedKeys } = this.#parts
    try {
      const keys = findRemovedKeys(changes).map((id): ModelEvent => ({ action: 'delete', kind: 'public-key', id }))
      return [...(await toModelEvents({ access, db }, changes)), ...keys]
    } catch (error) {
      if (!(error instanceof TooManyChangesError || error instanceof TooManyMembersError))
        log.error({ err: error }, 'routers receive the whole data model, because a change of it could not be described')
      return undefined
    }
  }

  /** Removes some of the rows before the added one that are not needed: too many, too old, or before `base`. */
  async #remove(db: Transaction<Database>, added: Row, base: number): Promise<Row[]> {
    this.#addedSinceRemoval += 1
    const { sets, bytes: maxBytes, ageMs } = this.#limits
    const isTooLong = this.#count >= sets || this.#bytes > maxBytes
    if (this.#addedSinceRemoval < REMOVE_AFTER && !isTooLong) return []
    this.#addedSinceRemoval = 0
    const candidates = await db
      .selectFrom('model_changes')
      .select(['position', 'previous', 'at', 'size'])
      .where('position', '<', added.position)
      .orderBy('position')
      .limit(2 * REMOVE_AFTER)
      .execute()
    const removed: Row[] = []
    let count = this.#count + 1
    let bytes = this.#bytes + added.size
    for (const row of candidates) {
      const isOld = row.position <= base || row.at < added.at - ageMs
      if (!isOld && count <= sets && bytes <= maxBytes) break
      removed.push(row)
      count -= 1
      bytes -= row.size
    }
    if (removed.length === 0) return removed
    const positions = removed.map(({ position }) => position)
    await db
      .deleteFrom('model_changes')
      .where(isOneOf(db, 'position', positions))
      .execute()
    return removed
  }

  /** Follows a commit. Returns whether it changed the model. */
  apply({ position, recorded }: Pick<Commit, 'position' | 'recorded'>): boolean {
    const own = recorded?.[this.name] as Recorded | undefined
    if (own === undefined) return false
    const { added, removed } = own
    const last = removed.at(-1)
    this.#head = position
    this.#base = added.set ? Math.max(this.#base, last?.position ?? 0) : position
    this.#count += 1 - removed.length
    this.#bytes += added.size
    for (const { size } of removed) this.#bytes -= size
    this.#recent.push(added)
    this.#recentBytes += added.size
    while (this.#recent.length > MAX_RECENT || this.#recentBytes > MAX_RECENT_BYTES)
      this.#recentBytes -= this.#recent.shift()?.size ?? 0
    return true
  }
}
