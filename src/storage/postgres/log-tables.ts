// The tables of a shared log in PostgreSQL, and what a database must be to hold one.
import type { Client } from 'pg'
import type { LogPosition } from '../commit-log.ts'

/** The rules of the log: a controller with others may not write to it. */
const LOG_VERSION = 1

const OLDEST_RELEASE = 14

/** The database cannot hold the log, or holds none. The message says what to do. */
export class LogDatabaseError extends Error {
  override readonly name = 'LogDatabaseError'
}

// One row in head, whose lock is the right to commit. Payloads are compressed before they are stored.
const TABLES = `
  create schema if not exists controller;
  create table controller.head (
    is_only boolean primary key default true check (is_only),
    position bigint not null,
    chain text not null,
    log_version int not null,
    proof bigint not null default 0
  );
  create table controller.commits (
    position bigint primary key,
    id text not null unique,
    node text not null,
    chain text not null,
    payload bytea not null
  );
  alter table controller.commits alter payload set storage external;`

/** Creates the log, which begins after a position. @throws LogDatabaseError if there is one, or the database cannot hold it */
export async function createLog(client: Client, start: LogPosition): Promise<void> {
  await requireUsableServer(client)
  if (await hasLog(client))
    throw new LogDatabaseError('the database has the log of a network: join it, or name another database')
  await client.query('begin')
  await client.query(TABLES)
  const head = [start.position, start.chain, LOG_VERSION]
  await client.query('insert into controller.head (position, chain, log_version) values ($1, $2, $3)', head)
  await client.query('commit')
}

/** @throws LogDatabaseError unless the database holds a log that this release can write to */
export async function requireLog(client: Client): Promise<void> {
  await requireUsableServer(client)
  if (!(await hasLog(client)))
    throw new LogDatabaseError('the database has no log: controller cluster init creates one')
  const { rows } = await client.query<{ version: number }>('select log_version as version from controller.head')
  if (rows[0]?.version !== LOG_VERSION)
    throw new LogDatabaseError(`the log has version ${rows[0]?.version}; this release writes version ${LOG_VERSION}`)
}

async function hasLog(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ table: string | null }>("select to_regclass('controller.head')::text as table")
  return rows[0]?.table !== null
}

async function requireUsableServer(client: Client): Promise<void> {
  const { rows } = await client.query<{ release: number; synchronousCommit: string }>(`
    select current_setting('server_version_num')::int as release,
      current_setting('synchronous_commit') as "synchronousCommit"`)
  const [{ release, synchronousCommit }] = rows as [(typeof rows)[number]]
  const major = Math.floor(release / 10_000)
  if (major < OLDEST_RELEASE)
    throw new LogDatabaseError(`PostgreSQL ${major} is too old: ${OLDEST_RELEASE} is the oldest`)
  // Then it acknowledges what a crash loses.
  if (synchronousCommit === 'off')
    throw new LogDatabaseError('synchronous_commit is off: set it to on, so that what is acknowledged survives a crash')
}
