// The tables of a shared log in PostgreSQL, and what a database must be to hold one.
import type { Client } from 'pg'
import { version } from '../../foundation/version.ts'
import type { LogPosition, LogSchema } from '../commit-log.ts'
import { describeSchema, MIGRATIONS, type Migration } from '../migrate.ts'
import { type LogCipher, LogPayloadError } from './log-cipher.ts'
import { isPooledByStatement } from './server-facts.ts'

/** The rules of the log: a controller with others may not write to it. */
const LOG_VERSION = 1

const OLDEST_RELEASE = 14

/** The database cannot hold the log, or holds none that this controller may use. The message says what to do. */
export class LogDatabaseError extends Error {
  override readonly name = 'LogDatabaseError'
}

/** The rows with which a log begins. */
export interface LogStart extends LogPosition {
  /** The id of the network's log, which each of its controllers stores with its rows. */
  readonly network: string
  readonly schema: LogSchema
}

/** The head of a log: its place, and the facts that a controller checks before it uses it. */
export interface LogHead extends LogStart {
  /** How many times the rows were replaced: by a restore of the network. */
  readonly epoch: number
  /** Proof of the cluster key. */
  readonly keyCheck: Buffer
}

// One row in head, whose lock is the right to commit. Payloads are compressed before they are stored. Each duty is that of one controller,
// until its proof is older than a lease. A row of nodes belongs to the process that its instance names; to none if that is empty.
// A snapshot has a manifest once it is whole. Times of the server decide what is old, because all controllers share its clock.
const TABLES = `
  create schema if not exists controller;
  create table controller.head (
    is_only boolean primary key default true check (is_only),
    position bigint not null,
    chain text not null,
    log_version int not null,
    network text not null,
    epoch bigint not null default 1,
    migration text not null,
    schema_digest text not null,
    release text not null,
    key_check bytea not null,
    proof bigint not null default 0
  );
  create table controller.commits (
    position bigint primary key,
    id text not null unique,
    node text not null,
    at bigint not null,
    chain text not null,
    payload bytea not null
  );
  create table controller.snapshots (
    id text primary key,
    position bigint not null,
    chain text not null,
    manifest bytea,
    touched_at timestamptz not null default now()
  );
  create table controller.snapshot_parts (
    snapshot text not null references controller.snapshots on delete cascade,
    part int not null,
    data bytea not null,
    primary key (snapshot, part)
  );
  create table controller.digests (
    position bigint not null,
    node text not null,
    digest text not null,
    tables bytea,
    is_rebuilt boolean not null default false,
    computed_at timestamptz not null default now(),
    primary key (position, node)
  );
  create table controller.duties (
    name text primary key,
    node text not null default '',
    process text not null default '',
    proven_at timestamptz not null default '-infinity'
  );
  insert into controller.duties (name) values ('fabric'), ('timers');
  create table controller.nodes (
    name text primary key,
    instance text not null,
    address text not null,
    version text not null,
    position bigint not null,
    duties text[] not null,
    details jsonb not null default '{}',
    is_draining boolean not null default false,
    started_at timestamptz not null,
    seen_at timestamptz not null
  );
  alter table controller.commits alter payload set storage external;
  alter table controller.snapshot_parts alter data set storage external;`

/** Creates the log of a network. @throws LogDatabaseError if there is one, or the database cannot hold it */
export async function createLog(client: Client, start: LogStart, cipher: LogCipher): Promise<void> {
  await requireUsableServer(client)
  const { schema, isInUse, canCreate } = await readRights(client)
  if (isInUse) throw new LogDatabaseError('the database has the log of a network: join it, or name another database')
  if (!canCreate) {
    const right = schema ? 'create on schema controller' : 'create on database'
    throw new LogDatabaseError(`this account cannot create the log: grant it the right to ${right}, or use its owner`)
  }
  const { migration, digest, release } = start.schema
  const keyCheck = makeKeyCheck(cipher, start.network)
  await client.query('begin')
  await client.query(TABLES)
  await client.query(
    `insert into controller.head (position, chain, log_version, network, migration, schema_digest, release, key_check)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [start.position, start.chain, LOG_VERSION, start.network, migration, digest, release, keyCheck],
  )
  await client.query('commit')
}

/** Whether the database holds the log of a network. */
export async function hasLog(client: Client): Promise<boolean> {
  return (await readRights(client)).isInUse
}

/** Deletes the log with everything that controllers share by it. */
export async function dropLog(client: Client): Promise<void> {
  await client.query('drop schema controller cascade')
}

/** The head of the log. @throws LogDatabaseError unless the database holds a log that this release can write to */
export async function requireLog(client: Client): Promise<LogHead> {
  await requireUsableServer(client)
  const { isInUse, canUse } = await readRights(client)
  if (!isInUse) throw new LogDatabaseError('the database has no log: controller cluster init creates one')
  if (!canUse)
    throw new LogDatabaseError(
      'this account cannot write to the log: grant it usage on schema controller, and select, insert, update and delete on its tables',
    )
  const { rows } = await client.query<HeadRow>('select * from controller.head')
  const [head] = rows
  if (!head) throw new LogDatabaseError('the log has lost its head: restore the database of the log')
  if (head.log_version > LOG_VERSION)
    throw new LogDatabaseError(
      `the log has version ${head.log_version}, and this release writes version ${LOG_VERSION}: install release ${head.release} or later`,
    )
  if (head.log_version < LOG_VERSION)
    throw new LogDatabaseError(
      `the log has version ${head.log_version}, and this release writes version ${LOG_VERSION}: use release ${head.release}`,
    )
  const { position, chain, network, epoch, migration, schema_digest: digest, release, key_check: keyCheck } = head
  return { position, chain, network, epoch, schema: { migration, digest, release }, keyCheck }
}

/** @throws LogDatabaseError unless the cluster key of this controller is that of the log */
export function requireClusterKey({ network, keyCheck }: LogHead, cipher: LogCipher): void {
  try {
    if (cipher.decrypt(keyCheck, KEY_CHECK).toString() === network) return
  } catch (error) {
    if (!(error instanceof LogPayloadError)) throw error
  }
  throw new LogDatabaseError(
    'the cluster key is not that of the log: copy cluster.key from another controller of the network, or name the database of this one',
  )
}

/** @throws LogDatabaseError if the rows of this controller belong to another log; `network` is empty if they belong to none */
export function requireNetwork(head: LogHead, network: string): void {
  if (head.network === network) return
  const whose = network === '' ? 'and this directory belongs to none' : `and this directory belongs to ${network}`
  throw new LogDatabaseError(
    `the database has the log of the network ${head.network}, ${whose}: name the database of this network, or controller cluster join in a new directory`,
  )
}

/** @throws LogDatabaseError if the rows of the log have a schema that this program does not make */
export async function requireKnownSchema(
  { schema: { migration, digest, release } }: LogHead,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const newest = migrations.findIndex(({ name }) => name === migration)
  if (newest === -1)
    throw new LogDatabaseError(
      `the log was migrated by release ${release} (${migration}), and this is the older release ${version.version}: install release ${release} or later`,
    )
  if ((await describeSchema(migrations.slice(0, newest + 1))).digest !== digest)
    throw new LogDatabaseError(
      `the rows of the log have the schema of another build of release ${release} (${migration}): run the build that made it`,
    )
}

/** The proof of the newest cluster key, by which a controller finds out whether it has that key. */
export function makeKeyCheck(cipher: LogCipher, network: string): Buffer {
  return cipher.encrypt(Buffer.from(network), KEY_CHECK)
}

const KEY_CHECK = 'the proof of the cluster key'

interface HeadRow extends LogPosition {
  readonly log_version: number
  readonly network: string
  readonly epoch: number
  readonly migration: string
  readonly schema_digest: string
  readonly release: string
  readonly key_check: Buffer
}

interface Rights {
  /** Whether the schema exists. */
  readonly schema: boolean
  readonly isInUse: boolean
  readonly canCreate: boolean
  readonly canUse: boolean
}

/** Reads from the catalogs, which every account can read, whether there is a log, and what this account may do. */
async function readRights(client: Client): Promise<Rights> {
  const { rows } = await client.query<Rights>(`
    select space.oid is not null as schema, head.oid is not null as "isInUse",
      case when space.oid is null then has_database_privilege(current_database(), 'create')
        else has_schema_privilege(space.oid, 'usage') and has_schema_privilege(space.oid, 'create') end as "canCreate",
      space.oid is not null and has_schema_privilege(space.oid, 'usage') and not exists (
        select from pg_class as kind where kind.relnamespace = space.oid and kind.relkind = 'r'
          and not (has_table_privilege(kind.oid, 'select') and has_table_privilege(kind.oid, 'insert')
            and has_table_privilege(kind.oid, 'update') and has_table_privilege(kind.oid, 'delete'))
      ) as "canUse"
    from (select) as one
      left join pg_namespace as space on space.nspname = 'controller'
      left join pg_class as head on head.relnamespace = space.oid and head.relname = 'head'`)
  return rows[0] as Rights
}

async function requireUsableServer(client: Client): Promise<void> {
  const { rows } = await client.query<{ release: number; synchronousCommit: string; isReadOnly: boolean }>(`
    select current_setting('server_version_num')::int as release,
      current_setting('synchronous_commit') as "synchronousCommit",
      current_setting('transaction_read_only')::boolean as "isReadOnly"`)
  const [{ release, synchronousCommit, isReadOnly }] = rows as [(typeof rows)[number]]
  const major = Math.floor(release / 10_000)
  if (major < OLDEST_RELEASE)
    throw new LogDatabaseError(`PostgreSQL ${major} is too old: install ${OLDEST_RELEASE} or later`)
  // Then it acknowledges what a crash loses.
  if (synchronousCommit === 'off')
    throw new LogDatabaseError('synchronous_commit is off: set it to on, so that what is acknowledged survives a crash')
  if (isReadOnly)
    throw new LogDatabaseError('the database is read-only: set default_transaction_read_only to off for this account')
  if (await isPooledByStatement(client))
    throw new LogDatabaseError(
      'the pooler before PostgreSQL pools by statement, so that no lock outlasts one: set pool_mode to transaction or session, or name the server itself',
    )
}
