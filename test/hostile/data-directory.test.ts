// The protection of a data directory: which accounts can read it or take it over, and what is refused if that is unclear.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startController } from '../../server/start.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { BINARY, cleanEnvironment, serve } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'
import { lacks } from '../world/machine.ts'

const isRoot = process.geteuid?.() === 0

/** The account of a service, different from the one that runs the tests. */
const SERVICE = 65_534

const modeOf = (path: string) => lstatSync(path).mode & 0o777
const pathsOf = (directory: string) =>
  readdirSync(directory, { recursive: true }).map((name) => join(directory, String(name)))

interface CommandOptions {
  readonly uid?: number
  readonly isInContainer?: boolean
}

/** Runs a command to its end: in this process, or in one of its own as another account. */
async function command(args: readonly string[], options: CommandOptions = {}) {
  const { uid, isInContainer = false } = options
  if (uid === undefined) return commandLine(args, cleanEnvironment())
  const home = mkdtempSync(join(tmpdir(), 'directory-home-'))
  chownSync(home, uid, uid)
  const { status, stdout, stderr } = spawnSync(process.execPath, [BINARY, ...args], {
    env: { ...cleanEnvironment(home), ...(isInContainer ? { SHELL: undefined, HOME: undefined } : {}) },
    encoding: 'utf8',
    timeout: 25_000,
    uid,
    gid: uid,
  })
  return { code: status, stdout, stderr }
}

/** A copy of the template where another account reaches it. */
function reachableCopy(uid?: number): string {
  const directory = copyOfTemplate()
  chmodSync(join(directory, '..'), 0o755)
  chmodSync(directory, 0o700)
  if (uid !== undefined) for (const path of [directory, ...pathsOf(directory)]) chownSync(path, uid, uid)
  return directory
}

let directory: string
beforeEach(() => {
  directory = reachableCopy()
})
afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }))

const list = () => ['identity', 'list', '-o', 'name', '--offline', '--data-dir', directory]

describe('a data directory that other accounts could read', () => {
  it('is closed to them when it is opened, with every file in it', async () => {
    chmodSync(directory, 0o755)
    for (const path of pathsOf(directory)) chmodSync(path, lstatSync(path).isDirectory() ? 0o755 : 0o644)

    const { code } = await command(list())

    expect(code).toBe(0)
    expect([directory, ...pathsOf(directory)].filter((path) => (modeOf(path) & 0o077) !== 0)).toEqual([])
  })

  it('holds private files only, when it existed before under the usual umask', async () => {
    const existing = join(mkdtempSync(join(tmpdir(), 'existing-')), 'data')
    mkdirSync(existing)
    chmodSync(existing, 0o755)
    const served = await serve(
      ['--data-dir', existing, '--listen', `127.0.0.1:${await findFreePort()}`],
      cleanEnvironment(),
    )

    const open = [existing, ...pathsOf(existing)].filter((path) => (modeOf(path) & 0o077) !== 0)
    await served.stop()

    expect(open).toEqual([])
    rmSync(existing, { recursive: true })
  })

  it('is not repaired through a link that leads out of it', async () => {
    const elsewhere = join(directory, '..', 'elsewhere')
    writeFileSync(elsewhere, '')
    chmodSync(elsewhere, 0o644)
    rmSync(join(directory, 'token.key'))
    symlinkSync(elsewhere, join(directory, 'token.key'))

    const { code, stderr } = await command(list())

    expect([code, stderr]).toEqual([7, expect.stringMatching(/other accounts have rights.*\nTry: chmod go=/)])
    expect(modeOf(elsewhere)).toBe(0o644)
  })

  it('is not taken over if it holds files of others: it would be closed to them', async () => {
    const shared = mkdtempSync(join(tmpdir(), 'shared-'))
    chmodSync(shared, 0o755)
    writeFileSync(join(shared, 'theirs'), '')

    const { code, stderr } = await command(['serve', '--data-dir', shared, '--listen', '127.0.0.1:0'])

    expect([code, stderr]).toEqual([6, expect.stringMatching(/holds other files/)])
    expect(modeOf(shared)).toBe(0o755)
    rmSync(shared, { recursive: true })
  })
})

describe.skipIf(lacks('root, who can act as another account', isRoot))(
  'a data directory that belongs to the account of the service',
  () => {
    beforeEach(() => {
      rmSync(join(directory, '..'), { recursive: true })
      directory = reachableCopy(SERVICE)
    })

    it.each([
      ['a command that reads', () => list()],
      ['a command that writes', () => ['service', 'create', 'web', '--offline', '--data-dir', directory]],
      ['a rotation of certificates', () => ['pki', 'rotate', 'root', '--yes', '--offline', '--data-dir', directory]],
      ['a check', () => ['db', 'check', '--data-dir', directory]],
      ['a migration on trial', () => ['db', 'migrate', '--dry-run', '--data-dir', directory]],
    ])('has nothing of root in it after %s by root', async (_what, args) => {
      rmSync(join(directory, 'lock.db'))
      rmSync(join(directory, 'token.key'))

      const { code, stderr } = await command(args())

      expect([code, stderr]).toEqual([0, expect.any(String)])
      expect(pathsOf(directory).filter((path) => lstatSync(path).uid !== SERVICE)).toEqual([])
      expect((await command(list(), { uid: SERVICE })).code).toBe(0)
    })

    it('has nothing of root in it while root works on it', async () => {
      rmSync(join(directory, 'lock.db'))
      const served = await serve(
        ['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`],
        cleanEnvironment(),
      )

      const files = pathsOf(directory)
      const foreign = files.filter((path) => lstatSync(path).uid !== SERVICE)
      await served.stop('SIGKILL')

      expect(files).toContain(`${getDataPaths(directory).database}-wal`)
      expect(foreign).toEqual([])
      expect((await command(list(), { uid: SERVICE })).code).toBe(0)
    })

    it('belongs to it from the first file on if root made the controller in it', async () => {
      const empty = join(directory, '..', 'empty')
      mkdirSync(empty)
      chownSync(empty, SERVICE, SERVICE)

      const { code } = await command(['init', '--data-dir', empty])

      expect(code).toBe(0)
      expect(pathsOf(empty).filter((path) => lstatSync(path).uid !== SERVICE)).toEqual([])
      expect(existsSync(join(empty, 'config.yaml'))).toBe(true)
    })

    it('does not lend root to a link: what the account may not write, root does not write for it', async () => {
      const victim = join(directory, '..', 'victim')
      writeFileSync(victim, '')
      rmSync(join(directory, 'lock.db'))
      symlinkSync(victim, join(directory, 'lock.db'))

      const { code } = await command(list())

      expect(code).toBe(7)
      expect(lstatSync(victim).size).toBe(0)
    })

    it.each(['controller.db', 'token.key', 'pki/root.key', 'lock.db'])(
      'is refused with the remedy if %s belongs to another account',
      async (name) => {
        chownSync(join(directory, name), 0, 0)

        const { code, stderr } = await command(list(), { uid: SERVICE })

        expect([code, stderr]).toEqual([7, expect.stringMatching(/belongs to the account 0.*\nTry: .*chown/)])
      },
    )

    it('takes settings that only root can change', async () => {
      const { config } = getDataPaths(directory)
      chownSync(config, 0, 0)
      chmodSync(config, 0o644)

      expect((await command(list(), { uid: SERVICE })).code).toBe(0)

      chmodSync(config, 0o666)
      expect((await command(list(), { uid: SERVICE })).code).toBe(7)
    })

    it('is refused to an account that cannot enter it, in words', async () => {
      // As in a container, whose account has no entry in the list of users.
      const { code, stderr } = await command(list(), { uid: SERVICE - 1, isInContainer: true })

      expect([code, stderr]).toEqual([7, expect.stringMatching(/belongs to another account.*\nTry: /)])
    })
  },
)

describe('the lock of a data directory', () => {
  it.skipIf(lacks('root, who can act as another account', isRoot))(
    'is not held by a process that may only read it',
    () => {
      rmSync(join(directory, 'lock.db'))
      writeFileSync(join(directory, 'lock.db'), '', { mode: 0o644 })
      chmodSync(directory, 0o755)
      process.seteuid?.(SERVICE)
      try {
        expect(() => lockDirectory(directory)).toThrow(/belongs to/)
      } finally {
        process.seteuid?.(0)
      }
    },
  )

  it.each([
    ['cannot be written', () => chmodSync(join(directory, 'lock.db'), 0o400)],
    ['is not a lock', () => writeFileSync(join(directory, 'lock.db'), 'something else, and long enough to be read')],
    [
      'is a directory',
      () => {
        rmSync(join(directory, 'lock.db'))
        mkdirSync(join(directory, 'lock.db'), { mode: 0o700 })
      },
    ],
  ])('is a refusal where its file %s', async (what, prepare) => {
    const uid = isRoot ? SERVICE : undefined
    if (uid !== undefined) for (const path of [directory, ...pathsOf(directory)]) chownSync(path, uid, uid)
    prepare()
    if (uid !== undefined) chownSync(join(directory, 'lock.db'), uid, uid)

    const { code, stderr } = await command(list(), uid === undefined ? {} : { uid })

    expect([what, code, stderr]).toEqual([what, 7, expect.stringMatching(/lock of .* cannot be taken.*\nTry: /)])
  })
})

describe('a data directory with keys and no database', () => {
  const attempts: [string, () => string[]][] = [
    ['serve', () => ['serve', '--data-dir', directory, '--listen', '127.0.0.1:0']],
    ['an offline command', () => list()],
    ['db check', () => ['db', 'check', '--data-dir', directory]],
  ]

  it.each(attempts)('is refused by %s with the remedy, and gets no empty one', async (_what, args) => {
    const { database } = getDataPaths(directory)
    renameSync(database, `${directory}/../kept.db`)

    const { code, stderr } = await command(args())

    expect([code, stderr]).toEqual([5, expect.stringMatching(/controller\.db is missing\nTry: restore the database/)])
    expect(existsSync(database)).toBe(false)
  })

  it('is refused in the same way if the database is empty, or the settings are gone too', async () => {
    const { database, config } = getDataPaths(directory)
    truncateSync(database)
    const emptied = await command(['serve', '--data-dir', directory, '--listen', '127.0.0.1:0'])
    rmSync(database)
    rmSync(config)
    const unsettled = await command(['serve', '--data-dir', directory, '--listen', '127.0.0.1:0'])

    expect([emptied.code, unsettled.code]).toEqual([5, 5])
    expect(existsSync(config)).toBe(false)
  })

  it('lets go of the lock when it refuses', async () => {
    rmSync(getDataPaths(directory).database)

    await expect(startController({ directory, settings: {}, env: {} })).rejects.toThrow(/is missing/)

    lockDirectory(directory)()
  })
})

describe('a first start that was cut short', () => {
  it('is completed by the next one, wherever it ended', async () => {
    const { config, pki, tokenKey } = getDataPaths(directory)
    const stages = [[config], [config, join(pki, 'server.crt')], [config, pki], [config, pki, tokenKey]]

    for (const missing of stages) {
      const begun = join(directory, '..', `begun-${missing.length}-${missing.at(-1)?.slice(-5)}`)
      cpSync(directory, begun, { recursive: true })
      chmodSync(begun, 0o700)
      for (const path of missing) rmSync(path.replace(directory, begun), { recursive: true })
      writeFileSync(join(begun, 'config.yaml.0123456789ab.new'), 'half', { mode: 0o600 })

      expect([missing, (await command(['init', '--data-dir', begun])).code]).toEqual([missing, 0])
    }
  })
})
