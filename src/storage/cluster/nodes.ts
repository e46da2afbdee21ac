// The controllers of a cluster: each keeps a row in PostgreSQL, which says that it runs, how far it has followed the log, and what it does.
import pg, { type Client } from 'pg'
import { newId } from '../../foundation/ids.ts'
import { version } from '../../foundation/version.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import type { ClockOffset } from './network-clock.ts'

/** The facts that a controller tells the others at each contact. */
export interface NodeDetails {
  /** The newest migration that its program knows. */
  readonly migration: string
  /** Whether it waits for those of older releases to stop, and serves nothing yet. */
  readonly isWaiting: boolean
  /** The digest of the settings on which controllers agree. */
  readonly settings: string
  /** How far the clock of the database is ahead of its own, in milliseconds. */
  readonly databaseOffsetMs: number
  /** How many commits it lacked. */
  readonly behind: number
  /** The routers that are connected to it. */
  readonly routers: number
  /** The id of the cluster key that lies ready to replace the current one. */
  readonly nextKey: string | undefined
  /** The connections of clients. */
  readonly connections: number
  /** For how long it has been in contact without an interruption as long as a lease, in milliseconds. */
  readonly heldMs: number
  /** When it said so, by the clock of the database; undefined at its first contact. */
  readonly sentAt: number | undefined
}

/** A controller, as its row was at the last contact. */
export interface ClusterNode {
  readonly name: string
  readonly address: string
  readonly version: string
  /** The position up to which it has applied the log. */
  readonly position: number
  readonly startedAt: number
  /** How long its row has not changed, by the clock of the database. */
  readonly silentMs: number
  /** Whether it takes no new work. */
  readonly isDraining: boolean
  /** The work that it does for all. */
  readonly duties: readonly string[]
  /** Whether a process has the name, and was in contact within the lease. */
  readonly isLive: boolean
  /** Whether a process has the name, or has not said that it ended. */
  readonly hasProcess: boolean
  /** Absent of a release that does not say it. */
  readonly details: Partial<NodeDetails>
}

export interface NodesParts {
  readonly connection: LogConnection
  readonly name: string
  readonly address: string
  readonly leaseMs: number
}

/** Another process has the name of this controller. */
export class NodeNameTakenError extends Error {
  override readonly name = 'NodeNameTakenError'

  constructor(name: string) {
    super(`another controller runs under the name ${name}: end it, or give this one another by cluster.name`)
  }
}

// A name passes to another process once the one that had it has ended, or is silent for longer than the lease.
const REPORT = `
  insert into controller.nodes as node
    (name, instance, address, version, position, duties, details, started_at, seen_at)
  values ($1, $2, $3, $4, $5, $6, $8, clock_timestamp(), clock_timestamp())
  on conflict (name) do update set
    instance = excluded.instance, address = excluded.address, version = excluded.version, position = excluded.position,
    duties = excluded.duties, details = excluded.details, seen_at = excluded.seen_at,
    started_at = case when node.instance = excluded.instance then node.started_at else excluded.started_at end,
    is_draining = node.is_draining and node.instance = excluded.instance
  where node.instance in (excluded.instance, '')
    or node.seen_at < clock_timestamp() - make_interval(secs => $7)
  returning is_draining as "isDraining"`

// One statement, so that the head is not older than the rows.
const READ_ALL = `
  select node.*, head.position as head, head.chain as "headChain", extract(epoch from clock_timestamp()) * 1000 as "databaseNow"
  from controller.head left join lateral (
    select name, instance, address, version, position, duties, details, is_draining as "isDraining",
      (extract(epoch from started_at) * 1000)::float8 as "startedAt",
      (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as "silentMs"
    from controller.nodes
  ) as node on true order by node.name`

const RELEASE = `update controller.nodes set instance = '', duties = '{}' where name = $1 and instance = $2`

const DRAIN = 'update controller.nodes set is_draining = $2 where name = $1'

// Only if no process has the name, or one that is silent for longer than the lease.
const REMOVE = `
  delete from controller.nodes
  where name = $1 and (instance in ($2, '') or seen_at < clock_timestamp() - make_interval(secs => $3))`

const CLAIM_PAUSE_MS = 100
// As long as a response may take in the other steps of a start: the connection of contacts waits for a fraction of that.
const CLAIM_TIMEOUT_MS = 10_000

/** Whether a controller runs, and does not wait for others to be upgraded. */
export const isServing = ({ isLive, details }: Pick<ClusterNode, 'isLive' | 'details'>) =>
  isLive && details.isWaiting !== true

type Row = Omit<ClusterNode, 'isLive' | 'hasProcess'> & {
  readonly instance: string
  readonly head: number
  readonly headChain: string
  readonly databaseNow: string
}

export class ClusterNodes {
  readonly #parts: NodesParts
  /** Tells this process from any other, also one of the same name. */
  readonly #instance = newId()
  #rows: readonly ClusterNode[] = []
  readonly #sources: (() => Partial<NodeDetails>)[] = []
  #readAt = Number.NEGATIVE_INFINITY
  #head = 0
  #headChain = ''
  #behind = 0
  #isDraining = false
  #isLeaving = false
  #databaseOffsetMs: number | undefined
  /** The work that this controller does for all, asked at each contact. */
  listDuties: () => readonly string[] = () => []
  /** Told at each contact, at once. */
  onClockOffset: (offset: ClockOffset) => void = () => {}

  constructor(parts: NodesParts) {
    this.#parts = parts
  }

  /** All controllers that the cluster has had, as they were at the last contact. */
  list(): readonly ClusterNode[] {
    return this.#rows
  }

  /** How many serve, this one included. */
  get liveCount(): number {
    return Math.max(1, this.#rows.filter(isServing).length)
  }

  /** Whether this controller should give up what it does, because an operator wants to stop it. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** How far the clock of the database is ahead of that of this machine, at the last contact; undefined before. */
  get databaseOffsetMs(): number | undefined {
    return this.#databaseOffsetMs
  }

  /** How long a controller that is not in contact is taken to run. */
  get leaseMs(): number {
    return this.#parts.leaseMs
  }

  /** The position of the log at the last contact. */
  get head(): number {
    return this.#head
  }

  /** Tells which commits led to the head. */
  get headChain(): string {
    return this.#headChain
  }

  /** How many commits this controller lacked at the last contact. */
  get behind(): number {
    return this.#behind
  }

  /** How long ago the rows were read. */
  get ageMs(): number {
    return performance.now() - this.#readAt
  }

  /** Has the source asked at each contact for what the others should know of this controller. */
  describeBy(source: () => Partial<NodeDetails>): void {
    this.#sources.push(source)
  }

  /**
   * Waits while the process that had the name may have it still, and reports again if the database does not respond in time: a report of which
   * only the response was lost has the same instance as the next one.
   * @throws NodeNameTakenError if that process lives; what the connection throws, if the database refuses the report or does not respond for ten
   * seconds
   */
  async claim(position: number, now: () => number): Promise<void> {
    let silentMs = 0
    let respondedAt = performance.now()
    for (;;) {
      try {
        await this.report(position, now)
        return
      } catch (error) {
        if (error instanceof NodeNameTakenError) {
          respondedAt = performance.now()
          const before = silentMs
          silentMs = this.#rows.find(({ name }) => name === this.#parts.name)?.silentMs ?? 0
          if (silentMs < before) throw error
        } else if (error instanceof pg.DatabaseError || performance.now() - respondedAt > CLAIM_TIMEOUT_MS) throw error
        await new Promise((resolve) => setTimeout(resolve, CLAIM_PAUSE_MS))
      }
    }
  }

  /**
   * Commits the row of this controller, and reads those of all. Returns the position of the log, not before that commit.
   * @throws NodeNameTakenError; what the connection throws
   */
  async report(position: number, now: () => number): Promise<number> {
    const { connection, name, address, leaseMs } = this.#parts
    const duties = this.listDuties()
    const sentAt = now()
    const own = [name, this.#instance, address, version.version, position, duties]
    const values = [...own, leaseMs / 1_000, this.#describe(sentAt)]
    const [reported, all] = await connection.run((client) =>
      // A query, and not a commit, would succeed on a former primary whose standby has taken over.
      Promise.all([client.query<{ isDraining: boolean }>(REPORT, values), client.query<Row>(READ_ALL)]),
    )
    const offset = toClockOffset(Number(all.rows[0]?.databaseNow), sentAt, now())
    this.#databaseOffsetMs = offset.offsetMs
    this.onClockOffset(offset)
    this.#take(all.rows)
    const [row] = reported.rows
    if (!row) throw new NodeNameTakenError(name)
    this.#isDraining = row.isDraining
    this.#behind = Math.max(0, this.#head - position)
    return this.#head
  }

  /** Reads the rows of all now. @throws what the connection throws */
  async refresh(): Promise<void> {
    this.#take((await this.#parts.connection.run((client) => client.query<Row>(READ_ALL))).rows)
  }

  #take(rows: readonly Row[]): void {
    const { leaseMs } = this.#parts
    this.#readAt = performance.now()
    this.#head = rows[0]?.head ?? 0
    this.#headChain = rows[0]?.headChain ?? ''
    this.#rows = rows.flatMap(({ instance, head, headChain, databaseNow, ...node }) =>
      // The head comes without a row of a controller if there is none.
      node.name === null
        ? []
        : {
            ...node,
            hasProcess: instance !== '',
            isLive: instance !== '' && node.silentMs < leaseMs,
            details: withoutLateContact(node.details, Number(databaseNow) - node.silentMs, leaseMs),
          },
    )
  }

  #describe(now: number): Partial<NodeDetails> {
    const sentAt = this.#databaseOffsetMs === undefined ? undefined : Math.round(now + this.#databaseOffsetMs)
    const own = { behind: this.#behind, databaseOffsetMs: this.#databaseOffsetMs, sentAt }
    return Object.assign(own, ...this.#sources.map((source) => source())) as Partial<NodeDetails>
  }

  /** Lets another process have the name at once. */
  async release(): Promise<void> {
    const { connection, name } = this.#parts
    if (this.#isLeaving) await this.remove(name)
    else await connection.run((client) => client.query(RELEASE, [name, this.#instance]))
  }

  /** Has the row of this controller removed when it ends. */
  leave(): void {
    this.#isLeaving = true
  }

  /** Removes the row of a controller that does not run. Returns whether there was one. */
  async remove(name: string): Promise<boolean> {
    const { connection, leaseMs } = this.#parts
    const values = [name, this.#instance, leaseMs / 1_000]
    const { rowCount } = await connection.run((client) => client.query(REMOVE, values))
    return rowCount === 1
  }

  /** Has a controller give up its work, or take it again: it does so at its next contact. Returns whether there is one of that name. */
  async drain(name: string, isDraining: boolean): Promise<boolean> {
    const { rowCount } = await this.#parts.connection.run((client) => client.query(DRAIN, [name, isDraining]))
    return rowCount === 1
  }
}

/** Drops from a report for how long the controller was in contact, if the report arrived so late that it does not say whether it still was. */
function withoutLateContact(details: Partial<NodeDetails>, arrivedAt: number, leaseMs: number): Partial<NodeDetails> {
  const { sentAt } = details
  return sentAt !== undefined && arrivedAt - sentAt > leaseMs ? { ...details, heldMs: 0 } : details
}

/** Asks how far the clock of the database is ahead of that of this machine. */
export async function readClockOffset(client: Client, now: () => number): Promise<ClockOffset> {
  const sentAt = now()
  const { rows } = await client.query<{ now: string }>('select extract(epoch from clock_timestamp()) * 1000 as now')
  return toClockOffset(Number(rows[0]?.now), sentAt, now())
}

function toClockOffset(databaseNow: number, sentAt: number, receivedAt: number): ClockOffset {
  return { offsetMs: databaseNow - (sentAt + receivedAt) / 2, roundTripMs: receivedAt - sentAt }
}
