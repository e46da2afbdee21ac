// This controller as one of several, which share a log in PostgreSQL.
import type { Client } from 'pg'
import { type Clock, systemClock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Log } from '../../foundation/log.ts'
import { getDataPaths } from '../../settings/data-directory.ts'
import type { Migration } from '../migrate.ts'
import type { LogCipher } from '../postgres/log-cipher.ts'
import { LogConnection, withLogConnection } from '../postgres/log-connection.ts'
import { requireClusterKey, requireKnownSchema, requireLog, requireNetwork } from '../postgres/log-tables.ts'
import { PostgresLog } from '../postgres/postgres-log.ts'
import { readLogStart } from '../sqlite/log-start.ts'
import { RowsDivergedError, type Store } from '../store.ts'
import { ClusterKeys } from './cluster-keys.ts'
import { ContradictionJudge } from './contradiction-judge.ts'
import { Duty, type DutyName } from './duty.ts'
import { Heartbeat } from './heartbeat.ts'
import { Lease } from './lease.ts'
import { LogFollower } from './log-follower.ts'
import type { LogPlace } from './log-place.ts'
import { type ClockOffset, NetworkClock } from './network-clock.ts'
import { ClusterNodes, isServing, readClockOffset } from './nodes.ts'
import { isDamageError, proveLog } from './prove-log.ts'
import { type KeptRebuild, rebuildIfNeeded, requestRebuild } from './rebuild.ts'
import { RowComparison } from './row-comparison.ts'
import { SharedFiles } from './shared-files.ts'
import { SilenceWatch } from './silence-watch.ts'
import { SnapshotUpkeep } from './snapshot-upkeep.ts'
import { type UpgradeParts, upgradeSchema } from './upgrade-schema.ts'

// Contact is proven several times within a lease of the usual length, also if a response is lost.
const CONTACT_TIMEOUT_MS = 1_000
/** How long a request waits until what it asks for is applied. */
const CATCH_UP_TIMEOUT_MS = 2_000
const POSITION_PAUSE_MS = 25
const RETRY_AFTER_SECONDS = 1

export interface ClusterParts {
  /** The data directory. */
  readonly directory: string
  readonly clock: Clock
  /** Whether the time is that of the database. False in tests whose clocks stand still. */
  readonly followsDatabaseTime: boolean
  readonly log: Log
  /** Stops the process. */
  readonly fail: (error: Error) => void
  /** The migrations of this program. */
  readonly migrations: readonly Migration[]
  /** Whether rows that the log does not lead on from are replaced by those of the log. */
  readonly isRebuilt: boolean
}

export class Cluster {
  /** The name of this controller among them. */
  readonly name: string
  readonly commitLog: PostgresLog
  /** The keys and certificates of all of them. */
  readonly files: SharedFiles
  readonly lease: Lease
  readonly keys: ClusterKeys
  /** The time that all of them have. */
  readonly clock: NetworkClock
  readonly nodes: ClusterNodes
  /** Notices which of the others do not respond. */
  readonly silence: SilenceWatch
  /** Compares the rows of this controller with those of the others. */
  readonly comparison: RowComparison
  readonly snapshots: SnapshotUpkeep
  readonly #parts: ClusterParts
  readonly #place: LogPlace
  readonly #cipher: LogCipher
  /** Of its own, so that contact is proven while the others wait for a response. */
  readonly #contact: LogConnection
  readonly #duties: Duty[] = []
  #timers: Duty | undefined
  #isWaiting = false
  #store: Store | undefined
  #rebuild: KeptRebuild | undefined
  #heartbeat: Heartbeat | undefined
  #follower: LogFollower | undefined
  #routers: Duty | undefined

  private constructor(place: LogPlace, keys: ClusterKeys, parts: ClusterParts) {
    const { name, address, database, leaseMs } = place
    const { cipher } = keys
    this.keys = keys
    this.name = name
    this.#place = place
    this.#cipher = cipher
    this.#parts = parts
    this.clock = new NetworkClock(parts.clock)
    this.files = new SharedFiles(parts.directory, keys.current)
    keys.onReplace((current, former) => this.files.replaceKey(current, former))
    // The commit that encrypts them under a newer key is the first one under that.
    this.files.onRows(() => keys.settle())
    this.commitLog = new PostgresLog({ database, cipher, node: name })
    this.#contact = new LogConnection({ ...database, responseTimeoutMs: CONTACT_TIMEOUT_MS })
    this.nodes = new ClusterNodes({ connection: this.#contact, name, address, leaseMs })
    this.silence = new SilenceWatch(this.nodes, name)
    this.nodes.onClockOffset = (offset) => this.#followTime(offset)
    const migration = parts.migrations.at(-1)?.name ?? ''
    this.nodes.describeBy(() => ({ migration, isWaiting: this.#isWaiting, nextKey: keys.nextId }))
    this.nodes.describeBy(() => ({ heldMs: Math.round(this.lease.heldMs) }))
    this.nodes.listDuties = () => this.#duties.filter(({ isHeld }) => isHeld).map(({ name }) => name)
    const { directory, log } = parts
    this.comparison = new RowComparison({
      ...{ directory, database, cipher, node: name, log },
      isRebuilt: () => this.#rebuild !== undefined,
      fail: (error) => this.fail(error),
    })
    const { comparison } = this
    this.snapshots = new SnapshotUpkeep({ directory, database, comparison, log, listClusterKeys: () => keys.list() })
    this.lease = new Lease({
      clock: parts.clock,
      durationMs: leaseMs,
      seekContact: () => this.#heartbeat?.hurry(),
    })
  }

  /** @throws LogConnectionError, LogDatabaseError if the database does not hold the log that the rows of the directory follow */
  static async connect(place: LogPlace, parts: ClusterParts): Promise<Cluster> {
    const { directory, log } = parts
    const keys = new ClusterKeys({ directory, keyFile: place.clusterKeyFile, log })
    const { cipher } = keys
    return withLogConnection(place.database, async (connection) => {
      const head = await connection.run(requireLog)
      requireNetwork(head, readLogStart(getDataPaths(parts.directory).database).network)
      requireClusterKey(head, cipher)
      await requireKnownSchema(head, parts.migrations)
      const cluster = new Cluster(place, keys, parts)
      cluster.#followTime(await connection.run((client) => readClockOffset(client, () => parts.clock.now())))
      const { clock, migrations, isRebuilt } = parts
      const { commitLog } = cluster
      try {
        if (isRebuilt)
          cluster.#rebuild = await rebuildIfNeeded({ directory, clock, cipher, connection, commitLog, migrations })
      } catch (error) {
        // It has read commits: a connection that stays open keeps the process from ending.
        await commitLog.close()
        throw error
      }
      return cluster
    })
  }

  #followTime(offset: ClockOffset): void {
    if (this.#parts.followsDatabaseTime) this.clock.follow(offset)
  }

  /**
   * Leads the rows of the directory to the schema of this program, before the store opens them.
   * @throws DataDirectoryError `OLDER_CONTROLLERS`, NodeNameTakenError
   */
  async upgradeSchema(options: Pick<UpgradeParts, 'migrations' | 'isWaiting' | 'beforeMigration'>): Promise<void> {
    const { directory, log } = this.#parts
    const { clock, commitLog, nodes } = this
    const databaseFile = getDataPaths(directory).database
    const readMachineTime = () => this.lease.now().wall
    this.#isWaiting = true
    try {
      await upgradeSchema({ ...options, databaseFile, clock, readMachineTime, log, commitLog, nodes })
    } finally {
      this.#isWaiting = false
    }
  }

  /** The rows that were replaced because the log did not lead on from the rows of this controller; undefined if it did. */
  get rebuild(): KeptRebuild | undefined {
    return this.#rebuild
  }

  /** Stops the process. The next start rebuilds rows that differ from those of the log. */
  fail(error: Error): void {
    if (error instanceof RowsDivergedError) requestRebuild(this.#parts.directory, error.reason)
    this.#parts.fail(error)
  }

  /** Claims the name of this controller, and applies what others have committed. @throws NodeNameTakenError */
  async join(store: Store): Promise<void> {
    this.#store = store
    await this.nodes.claim(store.position, () => this.lease.now().wall)
    await store.catchUp()
    // The head is encrypted under it: a former key has nothing left to read.
    this.keys.settle()
  }

  /** From now on the store applies what others commit, soon after they have, and rights may be granted. */
  follow(store: Store): void {
    const { log, fail } = this.#parts
    const judge = new ContradictionJudge({ ...this.#parts, database: this.#place.database, cipher: this.#cipher })
    const follower = new LogFollower(store, log, (error) => judge.note(error))
    const { nodes, lease } = this
    this.#follower = follower
    this.#timers = this.seek('timers')
    this.#heartbeat = new Heartbeat({ nodes, lease, store, log, fail, catchUp: () => follower.catchUp() })
    this.silence.start()
  }

  /** Takes a duty, from now on, whenever no other controller has it, unless this one drains. The caller closes it. */
  seek(name: DutyName): Duty {
    const { name: node, database, leaseMs } = this.#place
    const isWanted = () => !this.nodes.isDraining
    const duty = new Duty({ name, node, database, clock: systemClock, log: this.#parts.log, leaseMs, isWanted })
    this.#duties.push(duty)
    return duty
  }

  /** Whether this controller does the work by the clock that one does for all. */
  get hasTimers(): boolean {
    return this.#timers?.isHeld === true
  }

  /** The listener runs when another controller may do that work from now on. It must not throw. */
  onTimersLost(listener: () => void): void {
    this.#timers?.onLost(listener)
  }

  /**
   * Resolves when all that others have committed by now is applied here. All who ask at a time share one reading of the log.
   * @throws STORAGE_UNAVAILABLE if that takes too long
   */
  async catchUp(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('the log does not respond')), CATCH_UP_TIMEOUT_MS)
    })
    try {
      await Promise.race([this.#follower?.catchUp(), timeout])
    } catch (cause) {
      throw errors.STORAGE_UNAVAILABLE(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves when a position is applied here. @throws STORAGE_UNAVAILABLE if the log does not get there in time */
  async waitForPosition(position: number): Promise<void> {
    const endsAt = performance.now() + CATCH_UP_TIMEOUT_MS
    while ((this.#store?.position ?? 0) < position) {
      await this.catchUp()
      if ((this.#store?.position ?? 0) >= position) return
      const cause = `the log has not come to ${position}`
      if (performance.now() > endsAt)
        throw errors.STORAGE_UNAVAILABLE(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
      await new Promise((resolve) => setTimeout(resolve, POSITION_PAUSE_MS))
    }
  }

  /** Takes the routers, from now on, whenever no other controller has them. The caller closes it. */
  seekRouters(): Duty {
    this.#routers = this.seek('fabric')
    return this.#routers
  }

  /** The name of the controller that has the routers; undefined if none has, or this one does not seek them. */
  get nodeOfRouters(): string | undefined {
    return this.#routers?.holder
  }

  /** Runs queries that change nothing, by a connection of their own. @throws LogConnectionError */
  readonly inspect = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const database = { ...this.#place.database, responseTimeoutMs: CATCH_UP_TIMEOUT_MS }
    return withLogConnection(database, (connection) => connection.run(work))
  }

  /** Reads the log since its newest snapshot. Returns a sentence on the first commit that is not as it was made. */
  async findDamage(): Promise<string | undefined> {
    try {
      await withLogConnection(this.#place.database, (connection) => proveLog(connection, this.#cipher))
      return undefined
    } catch (error) {
      if (isDamageError(error)) return (error as Error).message
      throw error
    }
  }

  /** The names of the controllers that run, at the last contact. */
  listLiveNames(): string[] {
    return this.nodes.list().flatMap(({ name, isLive }) => (isLive ? [name] : []))
  }

  /** The names of the controllers that run, and do not wait for others to be upgraded. */
  listServingNames(): string[] {
    return this.nodes
      .list()
      .filter(isServing)
      .map(({ name }) => name)
  }

  async stopFollowing(): Promise<void> {
    this.silence.close()
    await Promise.all([this.#follower?.close(), this.#heartbeat?.close(), this.#timers?.close()])
    await Promise.all([this.comparison.close(), this.snapshots.close()])
  }

  /** Ends the connections to the log, which the store does not need any more. */
  async close(): Promise<void> {
    await this.stopFollowing()
    // The row says soon anyway that the process has ended.
    await this.nodes.release().catch(() => undefined)
    this.#contact.end()
    await this.commitLog.close()
  }
}
