// Snapshots of the rows in the database of the log: a controller that has none begins with the newest, and follows the log from there.
//
// They are compressed and encrypted like commits, each part for its place, so that the database can neither read nor mix them.
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Client } from 'pg'
import { newId } from '../../foundation/ids.ts'
import { runAsOwner } from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import { type LogCipher, LogPayloadError } from '../postgres/log-cipher.ts'
import { LogDatabaseError } from '../postgres/log-tables.ts'
import { discardDatabase } from '../sqlite/copy-database.ts'
import { readLogStart } from '../sqlite/log-start.ts'

const PART_BYTES = 1024 * 1024
// The fastest level: a third of the size for 10 ms a part.
const DEFLATE_LEVEL = 1

/** A snapshot that is whole. Its place is that to which its rows were led, as the controller said that made it. */
export interface Snapshot extends LogPosition {
  readonly id: string
  readonly parts: number
  /** Of the file, lower-case hex. */
  readonly sha256: string
  /** The last restore of a backup for all controllers, if there was one: that snapshot, or an earlier one, has its rows. */
  readonly restore?: SnapshotRestore | undefined
}

/** The restore of a backup for all controllers. */
export interface SnapshotRestore {
  /** When the backup was made, as it says itself. */
  readonly backupOf: string
  /** The place of its rows in the log, which is after every place before. */
  readonly position: number
}

type Manifest = Omit<Snapshot, 'id'>

/** A snapshot whose parts are all in the database, and which no controller uses before it has its manifest there. */
export interface UploadedSnapshot extends LogPosition {
  readonly id: string
  /** Encrypted. */
  readonly manifest: Buffer
}

/** Stores a copy of the rows, which no process changes any more. Returns the place to which they were led. */
export async function storeSnapshot(client: Client, cipher: LogCipher, copy: string): Promise<LogPosition> {
  const snapshot = await uploadParts(client, cipher, copy, await findRestore(client, cipher))
  await completeSnapshot(client, snapshot)
  const { position, chain } = snapshot
  return { position, chain }
}

/** Stores the parts of a snapshot: a copy of the rows, which no process changes any more. */
export async function uploadParts(
  client: Client,
  cipher: LogCipher,
  copy: string,
  restore: SnapshotRestore | undefined,
): Promise<UploadedSnapshot> {
  const { position, chain } = readLogStart(copy)
  const id = newId()
  const digest = createHash('sha256')
  await client.query('insert into controller.snapshots (id, position, chain) values ($1, $2, $3)', [
    ...[id, position, chain],
  ])
  let parts = 0
  for (const data of readParts(copy)) {
    digest.update(data)
    const sealed = cipher.encrypt(deflateRawSync(data, { level: DEFLATE_LEVEL }), describePart(id, parts))
    await client.query(INSERT_PART, [id, parts, sealed])
    parts += 1
  }
  const manifest: Manifest = { parts, sha256: digest.digest('hex'), position, chain, restore }
  const sealed = cipher.encrypt(Buffer.from(JSON.stringify(manifest)), describeManifest(id))
  return { id, position, chain, manifest: sealed }
}

/** Says in the database that a snapshot is whole. Returns false if it was deleted meanwhile. */
export async function completeSnapshot(client: Client, { id, manifest }: UploadedSnapshot): Promise<boolean> {
  const values = [id, manifest]
  const { rowCount } = await client.query('update controller.snapshots set manifest = $2 where id = $1', values)
  return rowCount === 1
}

const INSERT_PART = `
  with touched as (update controller.snapshots set touched_at = clock_timestamp() where id = $1)
  insert into controller.snapshot_parts (snapshot, part, data) values ($1, $2, $3)`

/** The snapshots, the newest first. @throws LogPayloadError if one is encrypted under another cluster key */
export async function readSnapshots(
  client: Client,
  cipher: LogCipher,
  limit: number | null = null,
): Promise<Snapshot[]> {
  const { rows } = await client.query<{ id: string; manifest: Buffer }>(READ_SNAPSHOTS, [limit])
  return rows.map(({ id, manifest }) => {
    return { id, ...(JSON.parse(cipher.decrypt(manifest, describeManifest(id)).toString()) as Manifest) }
  })
}

const READ_SNAPSHOTS =
  'select id, manifest from controller.snapshots where manifest is not null order by position desc limit $1'

/** The last restore of a backup for all controllers, as the newest snapshot says; undefined if nothing says that there was one. */
async function findRestore(client: Client, cipher: LogCipher): Promise<SnapshotRestore | undefined> {
  try {
    return (await readSnapshots(client, cipher, 1))[0]?.restore
  } catch (error) {
    // It is under a cluster key that was replaced.
    if (error instanceof LogPayloadError) return undefined
    throw error
  }
}

/** Says that a backup was restored since the rows of a controller were those of the log; undefined if none was. */
export async function describeRestoreSince(
  client: Client,
  cipher: LogCipher,
  { position }: LogPosition,
): Promise<string | undefined> {
  const restore = await findRestore(client, cipher)
  if (restore === undefined || restore.position <= position) return undefined
  return `the backup of ${restore.backupOf} was restored for all controllers`
}

/** The newest snapshot. @throws LogDatabaseError if there is none; LogPayloadError */
export async function readNewestSnapshot(client: Client, cipher: LogCipher): Promise<Snapshot> {
  const [newest] = await readSnapshots(client, cipher, 1)
  if (!newest)
    throw new LogDatabaseError(
      'the log has no snapshot yet: the command that begins the cluster was interrupted, run it again',
    )
  return newest
}

/**
 * Writes the rows of the newest snapshot to a file, which it replaces. Returns the place in the log that they were led to.
 * @throws LogDatabaseError if there is none, or it is damaged; LogPayloadError
 */
export async function downloadSnapshot(client: Client, cipher: LogCipher, file: string): Promise<LogPosition> {
  const snapshot = await readNewestSnapshot(client, cipher)
  const { id, parts, sha256, position, chain } = snapshot
  const digest = createHash('sha256')
  discardDatabase(file)
  const target = runAsOwner(dirname(file), () => openSync(file, 'wx', 0o600))
  try {
    for (let part = 0; part < parts; part += 1) {
      const data = await readPart(client, cipher, id, part)
      digest.update(data)
      writeSync(target, data)
    }
  } finally {
    closeSync(target)
  }
  if (digest.digest('hex') !== sha256) throw new LogDatabaseError('the newest snapshot of the log is damaged')
  return { position, chain }
}

async function readPart(client: Client, cipher: LogCipher, id: string, part: number): Promise<Buffer> {
  const query = 'select data from controller.snapshot_parts where snapshot = $1 and part = $2'
  const { rows } = await client.query<{ data: Buffer }>(query, [id, part])
  const [row] = rows
  if (!row) throw new LogDatabaseError('the newest snapshot of the log lacks a part')
  return inflateRawSync(cipher.decrypt(row.data, describePart(id, part)))
}

function* readParts(file: string): Iterable<Buffer> {
  const source = openSync(file, 'r')
  try {
    for (;;) {
      const buffer = Buffer.alloc(PART_BYTES)
      const length = readSync(source, buffer)
      if (length === 0) return
      yield buffer.subarray(0, length)
    }
  } finally {
    closeSync(source)
  }
}

const describePart = (id: string, part: number) => `part ${part} of the snapshot ${id}`
const describeManifest = (id: string) => `the manifest of the snapshot ${id}`
