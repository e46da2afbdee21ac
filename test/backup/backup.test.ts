// Backups of a data directory: made during writes, verified, and restored; what is damaged is refused, and nothing is half replaced.
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { readBackup } from '../../src/maintenance/backup/read-backup.ts'
import { restoreBackup, verifyBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { pack } from '../../src/maintenance/backup/tar.ts'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { completeRestore, getDataPaths, stageRestore } from '../../src/settings/data-directory.ts'
import { continueAfter, readCommitPosition } from '../../src/storage/sqlite/commit-position.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { copyOfTemplate, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { withFullDisk } from '../world/full-disk.ts'
import { copyAtEachRename } from '../world/killed-copies.ts'
import { Sqlite } from '../world/sqlite.ts'

const NOW = Date.UTC(2026, 10, 22, 12, 34, 56)
const PASSPHRASE = 'correct horse battery'

let folder: string
let directory: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'backup-test-'))
  directory = copyOfTemplate()
  file = join(folder, 'backup')
})
afterEach(() => {
  for (const path of [folder, join(directory, '..')]) rmSync(path, { recursive: true, force: true })
})

/** The content of every file of a data directory, except the lock and what a restore left. */
function contentOf(path: string): Record<string, string> {
  const names = readdirSync(path, { recursive: true }).map(String)
  const files = names.filter((name) => !/^(lock\.db|backups|before-restore)|-shm$|-wal$/.test(name))
  return Object.fromEntries(
    files
      .filter((name) => statSync(join(path, name)).isFile())
      .sort()
      .map((name) => [name, readFileSync(join(path, name)).toString('base64')]),
  )
}

/** The names of the identities in a database that no process has open. */
function listNames(path: string): string[] {
  const database = new Sqlite(getDataPaths(path).database, { readonly: true })
  try {
    return database.prepare('select name from identities order by n').pluck().all() as string[]
  } finally {
    database.close()
  }
}

const create = (world: TestController, token: string, name: string) =>
  world.send({
    method: 'POST',
    path: `${MANAGEMENT}/identities`,
    token,
    body: { name, type: 'Device', isAdmin: false },
  })

describe('a backup', () => {
  it('of a running controller in a storm of writes is one state of it, and holds everything acknowledged before', async () => {
    const world = await testController({ directory })
    const token = await world.admin()
    for (let i = 0; i < 20; i++) await create(world, token, `before ${i}`)
    let isDone = false
    const storm = Array.from({ length: 4 }, async (_, writer) => {
      for (let i = 0; !isDone; i++) await create(world, token, `storm ${writer} ${i}`)
    })

    const { findings } = await createBackup({ directory, file, now: NOW })
    isDone = true
    await Promise.all(storm)
    await world.stop()

    const target = join(folder, 'elsewhere')
    const restored = await restoreBackup({ file, directory: target, now: NOW })
    expect([findings, restored.findings]).toEqual([[], []])
    const names = listNames(target)
    for (let i = 0; i < 20; i++) expect(names).toContain(`before ${i}`)
    expect((await checkDatabase(target, getDataPaths(target))).findings).toEqual([])
    const again = await testController({ directory: target })
    expect((await again.send({ method: 'GET', path: `${MANAGEMENT}/identities?limit=1`, token })).status).toBe(200)
    await again.stop()
  })

  it('is a plain archive that tar unpacks, readable by its account only', async () => {
    await createBackup({ directory, file, now: NOW })
    const unpacked = join(folder, 'unpacked')
    mkdirSync(unpacked)

    const { status } = spawnSync('tar', ['xzf', file, '-C', unpacked])

    expect(status).toBe(0)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { 'controller.db': database, 'backup.json': manifest, ...others } = contentOf(unpacked)
    const { 'controller.db': _, ...expected } = contentOf(directory)
    expect(others).toEqual(expected)
    expect(database).toBeTruthy()
    expect(JSON.parse(Buffer.from(manifest ?? '', 'base64').toString())).toMatchObject({
      format: 'controller-backup',
      createdAt: '2026-11-22T12:34:56.000Z',
      position: readCommitPosition(getDataPaths(unpacked).database).position,
      migrations: [{ name: '0001-initial', version: expect.stringMatching(/^v\d/) }],
    })
    expect(readdirSync(folder).sort()).toEqual(['backup', 'unpacked'])
  })

  it('that is encrypted opens by its passphrase only', async () => {
    await createBackup({ directory, file, passphrase: PASSPHRASE, now: NOW })

    expect(readFileSync(file).includes('backup.json')).toBe(false)
    await expect(verifyBackup({ file })).rejects.toMatchObject({ code: 'PASSPHRASE_REQUIRED' })
    await expect(verifyBackup({ file, passphrase: 'wrong' })).rejects.toMatchObject({ code: 'WRONG_PASSPHRASE' })
    expect((await verifyBackup({ file, passphrase: PASSPHRASE })).findings).toEqual([])
  })

  it('that is not encrypted is refused if a passphrase is given, because anyone could have put it there', async () => {
    await createBackup({ directory, file, now: NOW })
    const target = join(folder, 'not-restored')

    await expect(verifyBackup({ file, passphrase: PASSPHRASE })).rejects.toMatchObject({ code: 'NOT_ENCRYPTED' })
    await expect(restoreBackup({ file, passphrase: PASSPHRASE, directory: target, now: NOW })).rejects.toMatchObject({
      code: 'NOT_ENCRYPTED',
    })
    expect(existsSync(target)).toBe(false)
  })

  it('of a damaged database is made, and says so', async () => {
    const database = new Sqlite(getDataPaths(directory).database)
    database.exec("update audit_records set entityName = 'changed' where n = 1")
    database.close()

    const { findings } = await createBackup({ directory, file, now: NOW })

    expect(findings).toEqual([expect.stringContaining('audit record 1')])
    expect((await verifyBackup({ file })).findings).toEqual(findings)
    const target = join(folder, 'elsewhere')
    await expect(restoreBackup({ file, directory: target, now: NOW })).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
    expect((await restoreBackup({ file, directory: target, now: NOW, isForced: true })).findings).toEqual(findings)
  })

  it('of a file with a damaged page has that page, and says so', async () => {
    const path = getDataPaths(directory).database
    const database = new Sqlite(path)
    database.pragma('wal_checkpoint(truncate)')
    const page = database.prepare("select rootpage from sqlite_master where name = 'services'").pluck().get() as number
    database.close()
    const descriptor = openSync(path, 'r+')
    writeSync(descriptor, Buffer.alloc(4096, 0xab), 0, 4096, (page - 1) * 4096)
    closeSync(descriptor)

    const { findings } = await createBackup({ directory, file, now: NOW })

    expect(findings.length).toBeGreaterThan(0)
    expect((await verifyBackup({ file })).findings).toEqual(findings)
  })

  it.each([
    'config.yaml',
    'audit.key',
    'secrets.key',
    'pki/root.crt',
    'pki/intermediate.key',
    'pki/server.key',
    'pki/trust-domain',
  ])('that could not be restored, because %s is missing, replaces nothing', async (name) => {
    writeFileSync(file, 'the backup before')
    rmSync(join(directory, name))

    await expect(createBackup({ directory, file, now: NOW })).rejects.toMatchObject({
      name: 'BackupError',
      code: 'BACKUP_FAILED',
      message: expect.stringContaining(name),
    })

    expect(readFileSync(file, 'utf8')).toBe('the backup before')
    expect(readdirSync(folder)).toEqual(['backup'])
    expect(readdirSync(directory).filter((entry) => entry.startsWith('.backup-'))).toEqual([])
  })

  it.each(['token.key', 'audit.key', 'secrets.key', 'secrets.key.previous'])(
    'that could not be restored, because %s is cut short, is not made',
    async (name) => {
      writeFileSync(join(directory, name), 'short')

      await expect(createBackup({ directory, file, now: NOW })).rejects.toMatchObject({
        code: 'BACKUP_FAILED',
        message: expect.stringContaining(`${name} is damaged`),
      })

      expect(readdirSync(folder)).toEqual([])
    },
  )

  it('of settings that a controller refuses is made, and names no address', async () => {
    writeFileSync(getDataPaths(directory).config, 'cors:\n  origins: [*.example.com]\n')

    const { owner } = await createBackup({ directory, file, now: NOW })

    expect(owner.address).toBe('')
    expect((await verifyBackup({ file })).manifest.owner).toEqual(owner)
  })

  it('needs no key of the root, which can be stored elsewhere', async () => {
    rmSync(join(directory, 'pki', 'root.key'))

    await createBackup({ directory, file, now: NOW })

    expect((await verifyBackup({ file })).findings).toEqual([])
  })

  it('for whose copy of the database there is no room says so', async () => {
    const backup = withFullDisk('mkdtempSync', () => createBackup({ directory, file, now: NOW }))

    await expect(backup).rejects.toMatchObject({ name: 'BackupError', code: 'DISK_FULL' })
  })

  it('that cannot be written leaves nothing behind', async () => {
    await expect(createBackup({ directory, file: join(folder, 'missing', 'backup'), now: NOW })).rejects.toThrow(
      /ENOENT/,
    )

    expect(readdirSync(folder)).toEqual([])
  })
})

describe('a restore', () => {
  it('keeps what it replaces, and replaces everything', async () => {
    await createBackup({ directory, file, now: NOW })
    const original = contentOf(directory)
    const world = await testController({ directory })
    await create(world, await world.admin(), 'after the backup')
    await world.stop()
    const replacedContent = contentOf(directory)
    writeFileSync(getDataPaths(directory).previousSecretsKey, Buffer.alloc(32))

    const { replaced } = await restoreBackup({ file, directory, now: NOW })

    expect(replaced).toBe(join(directory, 'before-restore-20261122-123456000'))
    const { 'controller.db': database, ...others } = contentOf(directory)
    const { 'controller.db': _, ...expected } = original
    expect([others, typeof database]).toEqual([expected, 'string'])
    expect(listNames(directory)).not.toContain('after the backup')
    const { 'secrets.key.previous': previousKey, ...kept } = contentOf(replaced as string)
    expect([kept, typeof previousKey]).toEqual([replacedContent, 'string'])
  })

  it('continues after every position and time that a commit had before, and after the clock', async () => {
    const { database } = getDataPaths(directory)
    await createBackup({ directory, file, now: NOW })
    // The replaced database was written by a clock that ran ahead.
    const ahead = Date.UTC(2100, 0)
    continueAfter(database, { position: NOW + 1_000, at: ahead }, NOW)
    expect(readCommitPosition(database).at).toBe(ahead + 1)

    await restoreBackup({ file, directory, now: NOW })
    expect(readCommitPosition(database)).toEqual({ position: NOW + 1_000, at: ahead + 2 })

    await restoreBackup({ file, directory, now: NOW + 5_000 })
    expect(readCommitPosition(database)).toEqual({ position: NOW + 5_000, at: ahead + 3 })
  })

  it('begins another timeline, to which no change of the data model of routers leads', async () => {
    const read = () => {
      const database = new Sqlite(getDataPaths(directory).database)
      const timeline = database.prepare('select timeline from commit_position').pluck().get() as string
      const changes = database.prepare('select count(*) from model_changes').pluck().get() as number
      database.close()
      return { timeline, changes }
    }
    const world = await testController({ directory })
    await world.controller.sessionTokens.beginSigning(world.system)
    const admin = await world.admin()
    await create(world, admin, 'before the backup')
    await world.stop()
    await createBackup({ directory, file, now: NOW })
    const before = read()
    expect(before.changes).toBeGreaterThan(0)

    await restoreBackup({ file, directory, now: NOW })

    expect(read()).toEqual({ timeline: expect.not.stringMatching(before.timeline), changes: 0 })
  })

  it('is refused while a controller runs, and changes nothing', async () => {
    await createBackup({ directory, file, now: NOW })
    const unlock = lockDirectory(directory)
    const before = contentOf(directory)

    await expect(restoreBackup({ file, directory, now: NOW })).rejects.toMatchObject({ name: 'DirectoryLockedError' })

    expect(contentOf(directory)).toEqual(before)
    unlock()
  })

  it('does not take over a directory with files of others', async () => {
    await createBackup({ directory, file, now: NOW })
    const shared = join(folder, 'shared')
    mkdirSync(shared)
    writeFileSync(join(shared, 'theirs'), '')

    await expect(restoreBackup({ file, directory: shared, now: NOW })).rejects.toMatchObject({ code: 'NOT_EMPTY' })
  })

  it('takes a directory that has what a new file system has at its top', async () => {
    await createBackup({ directory, file, now: NOW })
    const formatted = join(folder, 'formatted')
    mkdirSync(join(formatted, 'lost+found'), { recursive: true })

    await restoreBackup({ file, directory: formatted, now: NOW })

    expect(existsSync(getDataPaths(formatted).database)).toBe(true)
  })

  it('refuses a file that is cut, changed or of another kind, and changes nothing', async () => {
    await createBackup({ directory, file, now: NOW })
    const sealedFile = join(folder, 'sealed')
    await createBackup({ directory, file: sealedFile, passphrase: PASSPHRASE, now: NOW })
    const [plain, sealed] = [readFileSync(file), readFileSync(sealedFile)]
    const archive = gunzipSync(plain)
    const flip = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] as number) ^ 1
      return copy
    }
    const before = contentOf(directory)
    const broken: readonly (readonly [content: Buffer, code: string, isSealed?: boolean])[] = [
      [plain.subarray(0, plain.length / 2), 'BACKUP_DAMAGED'],
      [plain.subarray(0, plain.length - 1), 'BACKUP_DAMAGED'],
      // In the checksum: of compressed bytes, some lead to the same content by another way.
      [flip(plain, plain.length - 6), 'BACKUP_DAMAGED'],
      // Changed, and packed again.
      [gzipSync(flip(archive, archive.indexOf('SQLite format 3') + 5000)), 'BACKUP_DAMAGED'],
      [gzipSync(archive.subarray(0, archive.length - 2048)), 'BACKUP_DAMAGED'],
      [gzipSync(Buffer.from('not a tar archive'.repeat(100))), 'BACKUP_DAMAGED'],
      [gzipSync(replaceAll(archive, 'token.key', '../tokens')), 'BACKUP_DAMAGED'],
      [sealed.subarray(0, sealed.length / 2), 'BACKUP_DAMAGED', true],
      [flip(sealed, sealed.length - 100), 'BACKUP_DAMAGED', true],
      [Buffer.from('hello'), 'NOT_A_BACKUP'],
      [Buffer.alloc(0), 'NOT_A_BACKUP'],
    ]

    for (const [at, [bytes, code, isSealed]] of broken.entries()) {
      writeFileSync(file, bytes)
      const restore = restoreBackup({ file, directory, now: NOW, ...(isSealed ? { passphrase: PASSPHRASE } : {}) })
      await expect(restore, `file ${at}`).rejects.toMatchObject({ code })
      expect(contentOf(directory), `file ${at}`).toEqual(before)
    }
    expect(existsSync(join(folder, '..', 'tokens'))).toBe(false)
  })

  it('refuses a file in it that is larger than the manifest says, before it is unpacked', async () => {
    await createBackup({ directory, file, now: NOW })
    const archive = gunzipSync(readFileSync(file))
    const length = Number.parseInt(archive.toString('latin1', 124, 135), 8)
    const manifest = archive.subarray(512, 512 + length)
    const { files } = JSON.parse(manifest.toString())
    const packed = pack(
      [
        { name: 'backup.json', bytes: length, content: [manifest] },
        { name: files[0].name, bytes: files[0].bytes + 1, content: [Buffer.alloc(files[0].bytes + 1)] },
      ],
      NOW,
    )
    const chunks: Uint8Array[] = []
    for await (const chunk of packed) chunks.push(chunk)
    writeFileSync(file, gzipSync(Buffer.concat(chunks)))
    const take = vi.fn()

    const error = await readBackup({ file }, take).catch((thrown) => thrown)

    expect(error).toMatchObject({ code: 'BACKUP_DAMAGED', message: expect.stringMatching(/bytes, and not/) })
    expect(take).not.toHaveBeenCalled()
  })

  it('takes padding after its end, and refuses what is more than that', async () => {
    await createBackup({ directory, file, now: NOW })
    const archive = gunzipSync(readFileSync(file))
    const padTo = (bytes: number) => writeFileSync(file, gzipSync(Buffer.concat([archive, Buffer.alloc(bytes)])))

    padTo(20 * 512)
    const padded = await verifyBackup({ file })
    padTo(2 * 1024 * 1024)

    expect(padded.findings).toEqual([])
    await expect(verifyBackup({ file })).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
  })

  it('refuses a manifest that no controller wrote, and prints nothing of it', async () => {
    await createBackup({ directory, file, now: NOW })
    const archive = gunzipSync(readFileSync(file))
    const length = Number.parseInt(archive.toString('latin1', 124, 135), 8)
    const manifest = JSON.parse(archive.toString('utf8', 512, 512 + length))
    const { migrations: _, ...withoutMigrations } = manifest
    const broken: readonly (readonly [unknown, string])[] = [
      [{ ...manifest, files: [null] }, 'BACKUP_DAMAGED'],
      [{ ...manifest, files: [] }, 'BACKUP_DAMAGED'],
      [{ ...manifest, files: manifest.files.slice(1) }, 'BACKUP_DAMAGED'],
      [withoutMigrations, 'BACKUP_DAMAGED'],
      [{ ...manifest, files: [{ ...manifest.files[0], bytes: -1 }] }, 'BACKUP_DAMAGED'],
      [{ ...manifest, migrations: [null] }, 'BACKUP_DAMAGED'],
      [{ ...manifest, position: '1' }, 'BACKUP_DAMAGED'],
      [{ ...manifest, findings: [1] }, 'BACKUP_DAMAGED'],
      [{ ...manifest, createdAt: '\u001b[2J' }, 'BACKUP_DAMAGED'],
      [{ ...manifest, version: '\u001b[2J' }, 'NOT_A_BACKUP'],
      [{ ...manifest, version: 'v9.0.0', formatVersion: 2 }, 'BACKUP_NEWER'],
      [null, 'NOT_A_BACKUP'],
    ]

    for (const [content, code] of broken) {
      const text = Buffer.from(JSON.stringify(content))
      const packed = pack([{ name: 'backup.json', bytes: text.length, content: [text] }], NOW)
      const chunks: Uint8Array[] = []
      for await (const chunk of packed) chunks.push(chunk)
      writeFileSync(file, gzipSync(Buffer.concat(chunks)))

      const error = await verifyBackup({ file }).catch((thrown) => thrown)

      expect(error, text.toString()).toMatchObject({ name: 'BackupError', code })
      expect(error.message).not.toContain('\u001b')
    }
  })

  it('is completed by the next start if it is killed between any two of its steps', async () => {
    await createBackup({ directory, file, now: NOW })
    const target = join(folder, 'target')
    cpSync(copyOfTemplate(), target, { recursive: true })
    const before = contentOf(target)
    const restore = () => restoreBackup({ file, directory: target, now: NOW })
    const killed = await copyAtEachRename(target, join(folder, 'killed'), restore)
    const after = contentOf(target)
    expect(killed.length).toBeGreaterThan(8)

    for (const [at, path] of killed.entries()) {
      lockDirectory(path)()

      expect([before, after], `moment ${at}`).toContainEqual(contentOf(path))
      expect(
        readdirSync(path).filter((name) => name.startsWith('restored')),
        `moment ${at}`,
      ).toEqual([])
    }
  })

  it.each([
    ['its end, when it removes its folder', 'restored', []],
    ['its beginning, when it unpacks the backup', 'restored.unfinished', ['secrets.key', 'controller.db']],
  ])('that was killed at %s leaves nothing after the next start', (_step, name, entries) => {
    const before = contentOf(directory)
    mkdirSync(join(directory, name))
    for (const entry of entries) writeFileSync(join(directory, name, entry), 'of the backup')

    lockDirectory(directory)()

    expect(existsSync(join(directory, name))).toBe(false)
    expect(contentOf(directory)).toEqual(before)
  })

  it.each(['the directory of a controller', 'a new directory'])(
    'into %s that finds the disk full once it has begun is completed by the next start',
    async (target) => {
      await createBackup({ directory, file, now: NOW })
      const path = target === 'a new directory' ? join(folder, 'new') : directory
      const before = contentOf(directory)
      const restore = () => restoreBackup({ file, directory: path, now: NOW })

      const refused = withFullDisk('renameSync', restore, '/restored/')

      await expect(refused).rejects.toMatchObject({
        code: 'RESTORE_UNFINISHED',
        message: expect.stringContaining('no space left'),
        remedy: expect.stringContaining('the next start'),
      })
      lockDirectory(path)()
      expect(Object.keys(contentOf(path)).sort()).toEqual(Object.keys(before).sort())
    },
  )

  it('completes what is staged once, and only once', () => {
    const staging = join(directory, 'restored.unfinished')
    mkdirSync(staging)
    writeFileSync(join(staging, 'config.yaml'), 'log: { level: debug }\n')
    stageRestore(directory, staging, 'now', ['config.yaml'])

    const [first, second] = [completeRestore(directory), completeRestore(directory)]

    expect([first, second]).toEqual([join(directory, 'before-restore-now'), undefined])
    expect(readFileSync(getDataPaths(directory).config, 'utf8')).toContain('debug')
  })
})

/** Replaces text by text of the same length, also in the checksum of the tar header that contains it. */
function replaceAll(archive: Buffer, text: string, by: string): Buffer {
  const copy = Buffer.from(archive.toString('latin1').replaceAll(text, by), 'latin1')
  for (let at = copy.indexOf(by); at >= 0; at = copy.indexOf(by, at + 1)) {
    if (at % 512 !== 0) continue
    const header = Buffer.from(copy.subarray(at, at + 512)).fill(' ', 148, 156)
    const sum = header.reduce((total, byte) => total + byte, 0)
    copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148)
  }
  return copy
}
