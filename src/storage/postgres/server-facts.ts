// The settings and the state of a PostgreSQL server and of a log in it, for the doctor.
import type { Client } from 'pg'

/** The settings and the state of a server of the log. */
export interface ServerFacts {
  /** The major release. */
  readonly release: number
  readonly synchronousCommit: string
  /** The standbys that commits wait for, as the setting names them; empty if they wait for none. */
  readonly synchronousStandbys: string
  /** How many standbys follow it. */
  readonly standbys: number
  /** Whether commits are written through to the disk. */
  readonly hasFsync: boolean
  /** How long data may stay unacknowledged before a connection ends; 0: as the system has it, which is many minutes. */
  readonly userTimeoutMs: number
  /** How long a connection may be silent before it is probed. */
  readonly keepaliveIdleSeconds: number
}

/** The state of the log in the database. */
export interface LogFacts {
  readonly commits: number
  /** The size of the commits, in bytes. */
  readonly bytes: number
  /** How many commits there are since the newest whole snapshot, and its age. */
  readonly commitsSinceSnapshot: number
  readonly snapshotAgeMs: number | undefined
  /** Positions at which controllers computed different digests of their rows. */
  readonly differences: readonly DigestDifference[]
}

export interface DigestDifference {
  readonly position: number
  /** The controllers, those of equal digests together. */
  readonly groups: readonly (readonly string[])[]
}

const MAX_DIFFERENCES = 5

export async function readServerFacts(client: Client): Promise<ServerFacts> {
  const { rows } = await client.query<ServerFacts>(`
    select current_setting('server_version_num')::int / 10000 as release,
      current_setting('synchronous_commit') as "synchronousCommit",
      current_setting('synchronous_standby_names') as "synchronousStandbys",
      (select count(*) from pg_stat_replication) as standbys,
      current_setting('fsync')::boolean as "hasFsync",
      (select setting::int from pg_settings where name = 'tcp_user_timeout') as "userTimeoutMs",
      (select setting::int from pg_settings where name = 'tcp_keepalives_idle') as "keepaliveIdleSeconds"`)
  return rows[0] as ServerFacts
}

/** Whether each statement may run in another session of the server, as with a pooler in statement mode. */
export async function isPooledByStatement(client: Client): Promise<boolean> {
  const readSession = async () => (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
  try {
    await client.query('begin')
    const [first, second] = [await readSession(), await readSession()]
    await client.query('commit')
    return first !== second
  } catch (error) {
    // As PgBouncer says it.
    if ((error as Error).message.includes('statement pooling')) return true
    throw error
  }
}

export async function readLogFacts(client: Client): Promise<LogFacts> {
  const [log, digests] = await Promise.all([
    client.query<Omit<LogFacts, 'differences'>>(`
      with snapshot as (
        select position, touched_at from controller.snapshots where manifest is not null order by position desc limit 1
      )
      select (select count(*) from controller.commits) as commits,
        pg_total_relation_size('controller.commits') as bytes,
        head.position - coalesce((select position from snapshot), 0) as "commitsSinceSnapshot",
        (select (extract(epoch from clock_timestamp() - touched_at) * 1000)::float8 from snapshot) as "snapshotAgeMs"
      from controller.head`),
    client.query<DigestDifference>(
      `select position, json_agg(nodes) as groups from (
         select position, digest, array_agg(node order by node) as nodes from controller.digests group by position, digest
       ) as digests
       group by position having count(*) > 1 order by position desc limit $1`,
      [MAX_DIFFERENCES],
    ),
  ])
  const [facts] = log.rows as [Omit<LogFacts, 'differences'>]
  return { ...facts, snapshotAgeMs: facts.snapshotAgeMs ?? undefined, differences: digests.rows }
}
