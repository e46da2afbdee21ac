// Storage that fails under a controller: nothing is acknowledged that is not stored, and what is said is 503.
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { translateSqliteError } from '../../src/storage/sqlite/sqlite-errors.ts'
import { BINARY, cleanEnvironment, run, type Served, serve } from '../world/binary.ts'
import {
  ADMIN,
  copyOfTemplate,
  MANAGEMENT,
  type TestController,
  testController,
  toTestResponse,
} from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { findFreePort } from '../world/free-port.ts'
import { lacks } from '../world/machine.ts'
import { recordingLog } from '../world/recording-log.ts'
import { Sqlite } from '../world/sqlite.ts'

/** A limit on the size of files is to a database what a full disk is. */
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

describe('what SQLite reports of its files', () => {
  it.each([
    'SQLITE_FULL',
    'SQLITE_IOERR_WRITE',
    'SQLITE_READONLY',
    'SQLITE_READONLY_DBMOVED',
    'SQLITE_READONLY_DIRECTORY',
    'SQLITE_CORRUPT',
    'SQLITE_CORRUPT_INDEX',
    'SQLITE_NOTADB',
    'SQLITE_CANTOPEN',
    'SQLITE_CANTOPEN_ISDIR',
    'SQLITE_BUSY_SNAPSHOT',
    'SQLITE_LOCKED',
    'SQLITE_PROTOCOL',
  ])('is a 503 that says when to try again: %s', (code) => {
    const cause = new Sqlite.SqliteError('the disk has something', code)

    expect(translateSqliteError(cause)).toMatchObject({
      status: 503,
      code: 'STORAGE_UNAVAILABLE',
      retryAfterSeconds: 5,
      cause,
    })
  })

  it.each(['SQLITE_ERROR', 'SQLITE_MISUSE', 'SQLITE_CONSTRAINT_NOTNULL', 'SQLITE_TOOBIG'])(
    'is not mistaken for a fault of ours: %s',
    (code) => {
      const fault = new Sqlite.SqliteError('the statement has something', code)

      expect(translateSqliteError(fault)).toBe(fault)
    },
  )
})

describe('a database whose file', () => {
  let world: TestController
  let token: string
  const log = recordingLog()
  beforeEach(async () => {
    world = await testController({ log })
    token = await world.admin()
    log.lines.length = 0
  })
  afterEach(() => world.close().catch(() => {}))

  const database = () => getDataPaths(world.directory).database
  const create = (name: string) =>
    world.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body: { name, encryptionRequired: true } })
  const names = async () => {
    const { status, body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })
    return [status, body.data.map(({ name }: { name: string }) => name)]
  }

  it.each([
    ['is deleted', () => rmSync(database())],
    ['is replaced by another one', () => replace(database())],
    ['is moved away', () => renameSync(database(), `${database()}.away`)],
    ['loses its log', () => rmSync(`${database()}-wal`)],
  ])('%s: changes are refused with 503 and told to the log, and reading goes on', async (_what, happen) => {
    expectFaults(/STORAGE_UNAVAILABLE/)
    await create('before')

    happen()
    const refused = await Promise.all([create('one'), create('two')])
    const alone = await create('three')

    for (const { status, headers, body } of [...refused, alone]) {
      expect([status, body.error.code]).toEqual([503, 'STORAGE_UNAVAILABLE'])
      expect(headers['retry-after']).toBe('5')
    }
    expect(await names()).toEqual([200, ['before']])
    await world.controller.aggregatedLog.flush({ isFinal: true })
    const errorLines = log.lines.filter(({ level }) => level === 'error')
    expect(errorLines.map(({ fields }) => fields.count)).toEqual([undefined, 2])
    expect(String(log.lines[0]?.fields.err)).toMatch(/controller\.db(-wal)? was deleted or replaced/)
  })

  it('comes back is not trusted again: what was written meanwhile is in neither', async () => {
    expectFaults(/STORAGE_UNAVAILABLE/)
    renameSync(database(), `${database()}.away`)
    await create('meanwhile')
    renameSync(`${database()}.away`, database())

    expect((await create('after')).status).toBe(503)
  })

  it('is deleted while transactions are under way: none of them is acknowledged', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) =>
        world.system.write(async (tx) => {
          // The first one deletes it, so that the group has begun and has not been committed yet.
          if (at === 0) rmSync(database())
          await tx.db.updateTable('identities').set({ updatedAt: at }).execute()
        }),
      ),
    )

    expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'rejected'))
  })

  it('is replaced: streams do not read from the other one', async () => {
    expectFaults(/STORAGE_UNAVAILABLE/)
    await create('before')
    replace(database())

    const { status } = await world.send({ method: 'GET', path: `${MANAGEMENT}/services?limit=-1`, token })

    expect(status).toBe(503)
  })

  it('is overwritten with nonsense: reading it is a 503 with a log entry', async () => {
    for (let at = 0; at < 40; at++) await create(`service ${at}`)
    await world.stop()
    // Everything after the first page, which is read at the start.
    const { size } = statSync(database())
    writeFileSync(database(), Buffer.concat([readFileSync(database()).subarray(0, 4096), Buffer.alloc(size - 4096, 7)]))

    const opening = testController({ directory: world.directory, log })

    await expect(opening).rejects.toMatchObject({ status: 503, code: 'STORAGE_UNAVAILABLE' })
  })
})

describe('a stop while the database is gone', () => {
  it('closes everything and ends the process', async () => {
    expectFaults(/STORAGE_UNAVAILABLE/, /a part of the controller did not close/)
    const directory = copyOfTemplate()
    const { served, transport, send } = await start(directory)
    const token = (await send('POST', '/authenticate?method=password', ADMIN)).body.data.token
    rmSync(getDataPaths(directory).database)
    const { status } = await send('POST', '/services', { name: 'lost', encryptionRequired: true }, token)

    const code = await served.stop()
    await transport.close?.()

    expect([status, code]).toEqual([503, 0])
  })
})

describe('a directory whose lock file was deleted', () => {
  it('is written by one controller at most: the first one stops when another one has written', async () => {
    expectFaults(/another process wrote/, /STORAGE_UNAVAILABLE/, /a part of the controller did not close/)
    const directory = copyOfTemplate()
    const first = await start(directory)
    const token = (await first.send('POST', '/authenticate?method=password', ADMIN)).body.data.token
    rmSync(join(directory, 'lock.db'))
    const second = await start(directory)
    const create = (controller: typeof first, name: string) =>
      controller.send('POST', '/services', { name, encryptionRequired: true }, token)

    const byFirst = await create(first, 'by the first')
    const bySecond = await create(second, 'by the second')

    expect([byFirst.status, bySecond.status]).toEqual([503, 201])
    for (const { served, transport } of [first, second]) {
      await transport.close?.()
      await served.stop()
    }
  })
})

describe('a start that fails half-way', () => {
  it.each([
    ['the second address is taken', takenAddress, /cannot listen on .*: another process listens there/],
    ['a certificate is broken', breaks('pki/server.crt'), /server\.crt cannot be used/],
    ['a key is broken', breaks('pki/intermediate.key'), /intermediate\.key cannot be used/],
    ['the session key is cut short', breaks('token.key'), /token\.key is damaged/],
    [
      'the database is not one',
      breaks('controller.db'),
      /database of .* cannot be used: its file is not a database\nTry: .*backup/,
    ],
    ['the database is a page of nothing', cutsDatabase, /database of .* cannot be used: .*\nTry: /],
    ['the settings are broken', breaks('config.yaml'), /settings|YAML/],
  ])('ends the process and lets go of the directory: %s', async (_what, prepare, message) => {
    const creation = copyOfTemplate()
    const { args, release } = await prepare(creation)

    const ended = serve(['--data-dir', creation, ...args], cleanEnvironment())

    await expect(ended).rejects.toThrow(message)
    lockDirectory(creation)()
    release?.()
  })

  it.skipIf(lacks('prlimit', hasPrlimit))('ends when the disk is full, and starts once there is room', async () => {
    const creation = copyOfTemplate()
    const port = await findFreePort()
    const args = ['--data-dir', creation, '--listen', `127.0.0.1:${port}`]

    const full = await run(
      'prlimit',
      ['--fsize=1:unlimited', process.execPath, BINARY, 'serve', ...args],
      cleanEnvironment(),
    )
    const served = await serve(args, cleanEnvironment())

    expect([full.code, full.stderr]).toEqual([1, expect.stringMatching(/cannot be used: .*\nTry: .*space/)])
    expect(await served.stop()).toBe(0)
  })

  it.skipIf(lacks('prlimit', hasPrlimit))('is completed when a first start found the disk full', async () => {
    const creation = join(mkdtempSync(join(tmpdir(), 'full-')), 'data')
    const init = ['init', '--data-dir', creation]
    const codes: (number | null)[] = []
    for (const bytes of [1, 5_000, 40_000, 200_000]) {
      const ended = await run(
        'prlimit',
        [`--fsize=${bytes}:unlimited`, process.execPath, BINARY, ...init],
        cleanEnvironment(),
      )
      codes.push(ended.code)
    }

    const { code } = await run(process.execPath, [BINARY, ...init], cleanEnvironment())

    expect(codes).toEqual([1, 1, 1, 1])
    expect(code).toBe(0)
  })
})

interface Prepared {
  readonly args: string[]
  release?(): void
}

function breaks(name: string) {
  return async (directory: string): Promise<Prepared> => {
    writeFileSync(
      join(directory, name),
      'nonsense: [that cannot be parsed, and that is long enough for a header of SQLite, '.repeat(20),
    )
    return { args: ['--listen', '127.0.0.1:0'] }
  }
}

async function cutsDatabase(directory: string): Promise<Prepared> {
  truncateSync(getDataPaths(directory).database, 4096)
  return { args: ['--listen', '127.0.0.1:0'] }
}

async function takenAddress(directory: string): Promise<Prepared> {
  const { createServer } = await import('node:net')
  const occupier = createServer()
  await new Promise<void>((resolve) => occupier.listen(0, '127.0.0.1', resolve))
  const address = occupier.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const listeners = [{ address: `127.0.0.1:${await findFreePort()}` }, { address: `127.0.0.1:${port}` }]
  writeFileSync(getDataPaths(directory).config, JSON.stringify({ listeners }), { mode: 0o600 })
  return { args: [], release: () => occupier.close() }
}

/** Puts a copy of a database in its place, as a restore would. */
function replace(file: string): void {
  copyFileSync(file, `${file}.copy`)
  renameSync(`${file}.copy`, file)
}

async function start(directory: string) {
  const rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')
  const served: Served = await serve(
    ['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`],
    cleanEnvironment(),
  )
  const transport: Transport = createHttpTransport({ url: served.url, rootPem })
  const send = async (method: string, path: string, body: unknown, token?: string) =>
    toTestResponse(
      await transport.send({
        method,
        path: MANAGEMENT + path,
        headers: token ? { 'net-session': token } : {},
        body,
      }),
    )
  return { served, transport, send }
}
