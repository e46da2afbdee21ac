// Checks what several controllers depend on: the log and its database, their clocks, and that they agree.
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { Config } from '../../settings/settings.ts'
import type { Cluster } from '../../storage/cluster/cluster.ts'
import { digestEqualSettings, findDifferentSettings } from '../../storage/cluster/equal-settings.ts'
import { listNodeStates, type NodeState } from '../../storage/cluster/node-states.ts'
import {
  isPooledByStatement,
  type LogFacts,
  readLogFacts,
  readServerFacts,
  type ServerFacts,
} from '../../storage/postgres/server-facts.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Diagnosis } from './diagnosis.ts'

/** A check of the doctor. */
export interface ClusterCheck {
  readonly name: string
  readonly summary: string
  /** Returns undefined if nothing shows it, because the database is out of reach. */
  run(): readonly Diagnosis[] | undefined | Promise<readonly Diagnosis[] | undefined>
}

/** The facts that the checks read; of the database undefined if it is out of reach. */
export interface ClusterFacts {
  readonly own: string
  readonly nodes: readonly NodeState[]
  readonly isInContact: boolean
  readonly server: ServerFacts | undefined
  readonly isPooledByStatement: boolean
  readonly log: LogFacts | undefined
}

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MIB = 1024 * 1024

// One-time codes and certificates depend on the clock, and leases of a suspended machine.
const MAX_CLOCK_OFFSET_MS = 500
// A snapshot is due each day.
const MAX_SNAPSHOT_AGE_MS = 2 * DAY_MS
const MIN_COMMITS_FOR_SNAPSHOT = 10_000
// A connection of a machine that vanished should end within minutes.
const MAX_KEEPALIVE_SECONDS = 600

const GUIDE = 'docs/several-controllers.md'

/** The checks of a controller among several; none of one that is alone. */
export async function listClusterChecks(
  cluster: Cluster | undefined,
  config: Config,
  context: Context,
): Promise<readonly ClusterCheck[]> {
  if (!cluster) return []
  const facts = await readClusterFacts(cluster)
  return [
    { name: 'log', summary: 'the log can be reached', run: () => checkContact(facts) },
    {
      name: 'log database',
      summary: 'what PostgreSQL has acknowledged outlives it',
      run: () => checkServer(facts),
    },
    { name: 'log size', summary: 'the log has a snapshot, and does not grow', run: () => checkLogSize(facts) },
    { name: 'nodes', summary: 'every controller of the network runs', run: () => checkNodes(facts) },
    { name: 'clocks', summary: 'the clocks of the controllers agree', run: () => checkClocks(facts) },
    { name: 'releases', summary: 'every controller is of one release', run: () => checkReleases(facts) },
    {
      name: 'equal settings',
      summary: 'the controllers agree on rights and expiry',
      run: () => checkEqualSettings(facts, config, context),
    },
    { name: 'digests', summary: 'every controller has the same rows', run: () => checkDigests(facts) },
  ]
}

async function readClusterFacts({ name, lease, nodes, inspect }: Cluster): Promise<ClusterFacts> {
  await nodes.refresh().catch(() => undefined)
  const common = { own: name, nodes: listNodeStates(nodes), isInContact: lease.isHeld }
  try {
    return await inspect(async (client) => {
      const isPooled = await isPooledByStatement(client)
      return {
        ...common,
        isPooledByStatement: isPooled,
        server: await readServerFacts(client),
        log: await readLogFacts(client),
      }
    })
  } catch {
    return { ...common, isInContact: false, isPooledByStatement: false, server: undefined, log: undefined }
  }
}

export function checkContact({ own, isInContact, isPooledByStatement }: ClusterFacts): Diagnosis[] {
  if (isPooledByStatement)
    return [
      {
        check: 'log',
        subject: 'the pooler before PostgreSQL',
        message: 'it pools by statement, so that no lock outlasts one: controllers cannot take turns',
        remedy: 'set pool_mode to transaction or session, or name the server itself in cluster.database',
      },
    ]
  if (isInContact) return []
  return [
    {
      check: 'log',
      subject: `controller ${own}`,
      message: 'it is not in contact with the database of the log, and grants nothing',
      remedy: 'start PostgreSQL, or repair the network to it; the log of the controller names the reason',
    },
  ]
}

export function checkServer({ server }: ClusterFacts): Diagnosis[] | undefined {
  if (!server) return undefined
  const diagnose = (subject: string, message: string, remedy: string): Diagnosis => ({
    check: 'log database',
    subject,
    message,
    remedy,
  })
  const { synchronousCommit, synchronousStandbys, standbys, hasFsync, userTimeoutMs, keepaliveIdleSeconds } = server
  const diagnoses: Diagnosis[] = []
  if (synchronousCommit === 'off' || !hasFsync)
    diagnoses.push(
      diagnose(
        hasFsync ? 'synchronous_commit' : 'fsync',
        'it is off, so that a crash of PostgreSQL loses commits that were acknowledged',
        'set it to on in postgresql.conf, and reload',
      ),
    )
  if (synchronousStandbys === '')
    diagnoses.push(
      diagnose(
        'synchronous_standby_names',
        standbys === 0
          ? 'there is no standby: the loss of the machine of PostgreSQL is the loss of what was committed since its backup'
          : 'no standby is synchronous: a failover loses what the standby lacks',
        `name a standby in it, as ${GUIDE} describes; a service that replicates below PostgreSQL does not show here`,
      ),
    )
  else if (synchronousCommit === 'local')
    diagnoses.push(
      diagnose(
        'synchronous_commit',
        'it is local, so that commits do not wait for the standby: a failover loses what that lacks',
        'set it to on for the account of the controllers',
      ),
    )
  if (userTimeoutMs === 0 && keepaliveIdleSeconds > MAX_KEEPALIVE_SECONDS)
    diagnoses.push(
      diagnose(
        'tcp_user_timeout, tcp_keepalives_idle',
        'PostgreSQL keeps the connections of a machine that vanished for hours',
        "set tcp_user_timeout to '10s' and tcp_keepalives_idle to 60 in postgresql.conf, and reload",
      ),
    )
  return diagnoses
}

export function checkLogSize({ log }: ClusterFacts): Diagnosis[] | undefined {
  if (!log) return undefined
  const { commits, bytes, commitsSinceSnapshot, snapshotAgeMs } = log
  const isOld = snapshotAgeMs === undefined || snapshotAgeMs > MAX_SNAPSHOT_AGE_MS
  if (!isOld || commitsSinceSnapshot < MIN_COMMITS_FOR_SNAPSHOT) return []
  const since = snapshotAgeMs === undefined ? 'has no snapshot' : `has no snapshot for ${toDays(snapshotAgeMs)} days`
  return [
    {
      check: 'log size',
      subject: 'the log',
      message: `it ${since}, so that ${commits} commits (${Math.ceil(bytes / MIB)} MiB) are kept, and a new controller reads ${commitsSinceSnapshot} of them`,
      remedy: 'look for the reason in the log of the controller that has the duty timers: controller node list',
    },
  ]
}

export function checkNodes({ nodes }: ClusterFacts): Diagnosis[] {
  return nodes.flatMap(({ name, state, silentMs, behind }): Diagnosis[] => {
    if (state !== 'silent' && state !== 'stopped') return []
    const isLong = silentMs > DAY_MS
    // One that an operator has stopped is expected soon.
    if (state === 'stopped' && !isLong) return []
    const since = isLong ? `${toDays(silentMs)} days` : `${Math.floor(silentMs / SECOND_MS)} seconds`
    const message = `it has not been in contact for ${since}, and lacks ${behind} commits`
    const start = 'start it, or look at its log'
    const removal = `or, if it is gone for ever: controller node delete ${quoteShellWord(name)}`
    return [{ check: 'nodes', subject: `controller ${name}`, message, remedy: `${start}; ${removal}` }]
  })
}

export function checkClocks({ nodes }: ClusterFacts): Diagnosis[] {
  return nodes.flatMap(({ name, state, details: { databaseOffsetMs } }): Diagnosis[] => {
    if (databaseOffsetMs === undefined || state === 'stopped' || Math.abs(databaseOffsetMs) <= MAX_CLOCK_OFFSET_MS)
      return []
    const direction = databaseOffsetMs > 0 ? 'behind' : 'ahead of'
    const message = `its clock is ${(Math.abs(databaseOffsetMs) / SECOND_MS).toFixed(1)} seconds ${direction} that of PostgreSQL`
    return [{ check: 'clocks', subject: `controller ${name}`, message, remedy: 'synchronize the clocks of both (NTP)' }]
  })
}

export function checkReleases({ nodes }: ClusterFacts): Diagnosis[] {
  const running = nodes.filter(({ state }) => state !== 'stopped' && state !== 'silent')
  const releases = [...new Set(running.map(({ version }) => version))]
  const migrations = new Set(running.map(({ details }) => details.migration))
  if (releases.length < 2 && migrations.size < 2) return []
  return running.map(({ name, version }) => ({
    check: 'releases',
    subject: `controller ${name}`,
    message: `it is of release ${version}, and not all are`,
    remedy: 'finish the upgrade: install the newest release on each, one after another',
  }))
}

async function checkEqualSettings({ nodes }: ClusterFacts, config: Config, { db }: Context): Promise<Diagnosis[]> {
  const own = (await findDifferentSettings(db, config)).map(
    ({ key, own, shared }): Diagnosis => ({
      check: 'equal settings',
      subject: key,
      message: `it is ${own} at this controller, and ${shared} for the network`,
      remedy: 'change it in config.yaml, and start this controller again',
    }),
  )
  const digest = digestEqualSettings(config)
  const others = nodes.filter(({ state, details }) => state === 'live' && details.settings !== undefined)
  const different = others.filter(({ details }) => details.settings !== digest)
  return [
    ...own,
    ...different.map(
      ({ name }): Diagnosis => ({
        check: 'equal settings',
        subject: `controller ${name}`,
        message: 'it decides rights or expiry by other settings than this controller',
        remedy: 'stop it, then on its machine: controller cluster settings, and start it again',
      }),
    ),
  ]
}

export function checkDigests({ log }: ClusterFacts): Diagnosis[] | undefined {
  return log?.differences.map(({ position, groups }) => ({
    check: 'digests',
    subject: `commit ${position}`,
    message: `after it the rows of ${groups.map((names) => names.join(' and ')).join(' differ from those of ')}`,
    remedy:
      'restart the controller in the minority unless a service manager has: its start rebuilds the rows; keep the folder before-rebuild-… in its data directory for a report',
  }))
}

const toDays = (milliseconds: number) => Math.floor(milliseconds / DAY_MS)
