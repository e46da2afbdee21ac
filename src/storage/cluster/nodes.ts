// The controllers of a cluster: each keeps a row in PostgreSQL, which says that it runs, how far it has followed the log, and what it does.
import { errors } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import { version } from '../../foundation/version.ts'
import type { LogConnection } from '../postgres/log-connection.ts'

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
    (name, instance, address, version, position, duties, started_at, seen_at)
  values ($1, $2, $3, $4, $5, $6, clock_timestamp(), clock_timestamp())
  on conflict (name) do update set
    instance = excluded.instance, address = excluded.address, version = excluded.version, position = excluded.position,
    duties = excluded.duties, seen_at = excluded.seen_at,
    started_at = case when node.instance = excluded.instance then node.started_at else excluded.started_at end,
    is_draining = node.is_draining and node.instance = excluded.instance
  where node.instance in (excluded.instance, '')
    or node.seen_at < clock_timestamp() - make_interval(secs => $7)
  returning is_draining as "isDraining"`

// One statement, so that the head is not older than the rows.
const READ_ALL = `
  select node.*, head.position as head, extract(epoch from clock_timestamp()) * 1000 as "databaseNow"
  from controller.head left join lateral (
    select name, instance, address, version, position, duties, is_draining as "isDraining",
      (extract(epoch from started_at) * 1000)::float8 as "startedAt",
      (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as "silentMs"
    from controller.nodes
  ) as node on true order by node.name`

const RELEASE = `update controller.nodes set instance = '', duties = '{}' where name = $1 and instance = $2`

const DRAIN = 'update controller.nodes set is_draining = $2 where name = $1'

const CLAIM_PAUSE_MS = 100

type Row = Omit<ClusterNode, 'isLive'> & {
  readonly instance: string
  readonly head: number
  readonly databaseNow: string
}

export class ClusterNodes {
  readonly #parts: NodesParts
  /** Tells this process from any other, also one of the same name. */
  readonly #instance = newId()
  #rows: readonly ClusterNode[] = []
  #isDraining = false
  #databaseOffsetMs = 0
  /** The work that this controller does for all, asked at each contact. */
  listDuties: () => readonly string[] = () => []

  constructor(parts: NodesParts) {
    this.#parts = parts
  }

  /** All controllers that the cluster has had, as they were at the last contact. */
  list(): readonly ClusterNode[] {
    return this.#rows
  }

  /** How many run, this one included. */
  get liveCount(): number {
    return Math.max(1, this.#rows.filter(({ isLive }) => isLive).length)
  }

  /** Whether this controller should give up what it does, because an operator wants to stop it. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** How far the clock of the database is ahead of that of this machine, at the last contact. */
  get databaseOffsetMs(): number {
    return this.#databaseOffsetMs
  }

  /** Waits while the process that had the name may have it still. @throws NodeNameTakenError if that lives */
  async claim(position: number): Promise<void> {
    let silentMs = 0
    for (;;) {
      try {
        await this.report(position, () => 0)
        return
      } catch (error) {
        if (!(error instanceof NodeNameTakenError)) throw error
        const before = silentMs
        silentMs = this.#rows.find(({ name }) => name === this.#parts.name)?.silentMs ?? 0
        if (silentMs < before) throw error
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
    const values = [name, this.#instance, address, version.version, position, this.listDuties(), leaseMs / 1_000]
    const sentAt = now()
    const [own, all] = await connection.run((client) =>
      // A query, and not a commit, would succeed on a former primary whose standby has taken over.
      Promise.all([client.query<{ isDraining: boolean }>(REPORT, values), client.query<Row>(READ_ALL)]),
    )
    this.#databaseOffsetMs = Number(all.rows[0]?.databaseNow) - (sentAt + now()) / 2
    this.#rows = all.rows.map(({ instance, head, databaseNow, ...node }) => ({
      ...node,
      isLive: instance !== '' && node.silentMs < leaseMs,
    }))
    const [row] = own.rows
    if (!row) throw new NodeNameTakenError(name)
    this.#isDraining = row.isDraining
    return all.rows[0]?.head ?? position
  }

  /** Lets another process have the name at once. */
  async release(): Promise<void> {
    const { connection, name } = this.#parts
    await connection.run((client) => client.query(RELEASE, [name, this.#instance]))
  }

  /** Has a controller give up its work, or take it again. @throws NOT_FOUND */
  async drain(name: string, isDraining: boolean): Promise<void> {
    const { rowCount } = await this.#parts.connection.run((client) => client.query(DRAIN, [name, isDraining]))
    if (rowCount === 0) throw errors.NOT_FOUND({ message: `there is no controller of the name ${name}` })
  }
}
