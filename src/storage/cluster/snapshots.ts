// Snapshots of the rows in the database of the log: a controller that has none begins with one, and follows the log from there.
//
// They are encrypted like commits, and each part for its place, so that the database can neither read nor mix them.
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Client } from 'pg'
import { newId } from '../../foundation/ids.ts'
import { runAsOwner } from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import type { LogCipher } from '../postgres/log-cipher.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import { LogDatabaseError } from '../postgres/log-tables.ts'
import { copyDatabaseInto, discardDatabase } from '../sqlite/copy-database.ts'
import { readLogStart } from '../sqlite/log-start.ts'

const PART_BYTES = 1024 * 1024

interface Snapshot extends LogPosition {
  readonly id: string
  readonly manifest: Buffer
}

interface Manifest {
  readonly parts: number
  readonly sha256: string
}

/** Stores the rows of a database that is not in use. */
export async function uploadSnapshot(
  connection: LogConnection,
  cipher: LogCipher,
  databaseFile: string,
): Promise<void> {
  const copy = `${databaseFile}.snapshot`
  try {
    await copyDatabaseInto(databaseFile, copy)
    await connection.run((client) => upload(client, cipher, copy))
  } finally {
    discardDatabase(copy)
  }
}

async function upload(client: Client, cipher: LogCipher, file: string): Promise<void> {
  const { position, chain } = readLogStart(file)
  const id = newId()
  const digest = createHash('sha256')
  await client.query('insert into controller.snapshots (id, position, chain) values ($1, $2, $3)', [
    id,
    position,
    chain,
  ])
  let parts = 0
  for (const data of readParts(file)) {
    digest.update(data)
    const part = [id, parts, cipher.encrypt(data, describePart(id, parts))]
    await client.query('insert into controller.snapshot_parts (snapshot, part, data) values ($1, $2, $3)', part)
    parts += 1
  }
  const manifest: Manifest = { parts, sha256: digest.digest('hex') }
  const sealed = cipher.encrypt(Buffer.from(JSON.stringify(manifest)), describeManifest(id))
  // Last, because it says that the snapshot is whole.
  await client.query('update controller.snapshots set manifest = $2 where id = $1', [id, sealed])
}

/**
 * Writes the rows of the newest snapshot to a file, which it replaces. Returns the place in the log that they were led to.
 * @throws LogDatabaseError if there is none, or it is damaged; LogPayloadError
 */
export async function downloadSnapshot(
  connection: LogConnection,
  cipher: LogCipher,
  targetFile: string,
): Promise<LogPosition> {
  const unfinished = `${targetFile}.download`
  discardDatabase(unfinished)
  const { position, chain } = await connection.run((client) => download(client, cipher, unfinished))
  discardDatabase(targetFile)
  runAsOwner(dirname(targetFile), () => renameSync(unfinished, targetFile))
  return { position, chain }
}

async function download(client: Client, cipher: LogCipher, file: string): Promise<Snapshot> {
  const { rows } = await client.query<Snapshot>(`
    select id, position, chain, manifest from controller.snapshots
    where manifest is not null order by position desc limit 1`)
  const [snapshot] = rows
  if (!snapshot)
    throw new LogDatabaseError('the log has no snapshot yet: run controller cluster init again, which was interrupted')
  const { id, manifest } = snapshot
  const { parts, sha256 } = JSON.parse(cipher.decrypt(manifest, describeManifest(id)).toString()) as Manifest
  const digest = createHash('sha256')
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
  return snapshot
}

async function readPart(client: Client, cipher: LogCipher, id: string, part: number): Promise<Buffer> {
  const query = 'select data from controller.snapshot_parts where snapshot = $1 and part = $2'
  const { rows } = await client.query<{ data: Buffer }>(query, [id, part])
  const [row] = rows
  if (!row) throw new LogDatabaseError('the newest snapshot of the log lacks a part')
  return cipher.decrypt(row.data, describePart(id, part))
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
