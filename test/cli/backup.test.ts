// Backups on the command line: of a running controller and offline, verified, restored; every refusal names what helps.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { stageRestore } from '../../src/settings/data-directory.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { BINARY, cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const folder = mkdtempSync(join(tmpdir(), 'backup-commands-'))
const file = join(folder, 'controller.tar.gz')
const passphraseFile = join(folder, 'passphrase')
const cli = (...args: string[]) => commandLine(args, env)
const offline = ['--offline', '--data-dir', directory]
const names = async () => (await cli('identity', 'list', '-o', 'name', ...offline)).stdout.trim().split('\n')

beforeAll(() => writeFileSync(passphraseFile, 'correct horse battery\n'))
afterAll(() => {
  for (const path of [folder, join(directory, '..')]) rmSync(path, { recursive: true, force: true })
})

describe('controller db backup', () => {
  it('makes a backup while another process holds the directory, and db verify reads it', async () => {
    const unlock = lockDirectory(directory)
    const backup = await cli('db', 'backup', file, '--data-dir', directory)
    unlock()
    const verification = await cli('db', 'verify', file, '-o', 'json')

    expect(backup).toMatchObject({ code: 0, stderr: '' })
    expect(backup.stdout).toContain(`Wrote ${file} (${statSync(file).size} bytes) from ${directory}, and verified it.`)
    expect(backup.stdout).toContain('not encrypted')
    expect(JSON.parse(verification.stdout)).toMatchObject({ file, isWhole: true, findings: [] })
  })

  it('encrypts it by a passphrase file, without which it is not read', async () => {
    const sealed = join(folder, 'controller.tar.gz.age')

    const backup = await cli('db', 'backup', sealed, '--data-dir', directory, '--passphrase-file', passphraseFile)
    const without = await cli('db', 'verify', sealed)
    const verification = await cli('db', 'verify', sealed, '--passphrase-file', passphraseFile)
    const missing = await cli('db', 'verify', sealed, '--passphrase-file', '/nowhere/file')

    expect(missing.stderr).toMatch(
      /^the passphrase file \/nowhere\/file cannot be read: no such file or directory\nTry: /,
    )
    expect([backup.code, verification.code]).toEqual([0, 0])
    expect(readFileSync(sealed, 'latin1')).toMatch(/^age-encryption\.org\/v1\n/)
    expect([without.code, without.stderr]).toEqual([2, expect.stringMatching(/is encrypted\nTry: --passphrase-file/)])
  })

  it('names the address of a controller that has it from the environment, as in a container', async () => {
    const target = join(folder, 'of-container.tar.gz')
    const variables = { ...env, CONTROLLER_ADVERTISE: '[by-environment.example.com:1280]' }

    const backup = await commandLine(['db', 'backup', target, '--data-dir', directory], variables)

    expect(backup.stdout).toContain('It is of by-environment.example.com:1280 (root SHA-256 ')
  })

  it('says what helps if a file of the data directory is missing', async () => {
    const lacking = join(folder, 'without-root')
    cpSync(directory, lacking, { recursive: true })
    rmSync(join(lacking, 'pki', 'root.crt'))

    const { code, stderr } = await cli('db', 'backup', join(folder, 'without-root.tar.gz'), '--data-dir', lacking)

    expect(code).toBe(1)
    expect(stderr).toMatch(
      /root\.crt cannot be used: .*no such file or directory.*\nTry: restore the file from an earlier/,
    )
  })

  it('says that the database is missing, as db check does', async () => {
    const lacking = join(folder, 'without-database')
    cpSync(directory, lacking, { recursive: true })
    for (const name of readdirSync(lacking)) if (name.startsWith('controller.db')) rmSync(join(lacking, name))
    const target = join(folder, 'without-database.tar.gz')

    const check = await cli('db', 'check', '--data-dir', lacking)
    const backup = await cli('db', 'backup', target, '--data-dir', lacking)

    expect(check).toMatchObject({ code: 5, stderr: expect.stringContaining('controller.db is missing') })
    expect([backup.code, backup.stderr]).toEqual([check.code, check.stderr])
    expect(existsSync(target)).toBe(false)
  })

  it('refuses what is not a data directory, a backup, or a regular file', async () => {
    const elsewhere = await cli('db', 'backup', file, '--data-dir', folder)
    const device = await cli('db', 'backup', '/dev/null', '--data-dir', directory)
    const system = await cli('db', 'backup', '/proc/controller.tar.gz', '--data-dir', directory)
    const missing = await cli('db', 'verify', join(folder, 'missing'))
    const text = await cli('db', 'verify', passphraseFile)

    expect([elsewhere.code, device.code, missing.code, text.code]).toEqual([5, 2, 5, 2])
    expect(text.stderr).toContain('is not a backup of a controller')
    expect(system.code).toBe(1)
    expect(system.stderr).toMatch(/^\/proc\/controller\.tar\.gz cannot be written: .*\nTry: name a file in a directory/)
  })
})

describe('controller db backup after a restore was interrupted', () => {
  /** Makes a directory in which the restore of another token key was killed after the first of its files. */
  function interruptRestore(name: string): string {
    const path = join(folder, name)
    const staging = join(path, 'restored.unfinished')
    for (const to of [path, staging])
      cpSync(directory, to, { recursive: true, filter: (from) => !/backups/.test(from) })
    for (const entry of readdirSync(staging)) if (/^(lock|before)/.test(entry)) rmSync(join(staging, entry))
    writeFileSync(join(staging, 'token.key'), Buffer.alloc(32, 7))
    stageRestore(path, staging, 'now', readdirSync(staging))
    mkdirSync(join(path, 'before-restore-now'))
    renameSync(join(path, 'config.yaml'), join(path, 'before-restore-now', 'config.yaml'))
    renameSync(join(path, 'restored', 'config.yaml'), join(path, 'config.yaml'))
    return path
  }

  it('completes it, and backs up what was restored', async () => {
    const path = interruptRestore('completed')
    const target = join(folder, 'completed.tar.gz')
    const elsewhere = join(folder, 'completed-elsewhere')

    const { code, stderr } = await cli('db', 'backup', target, '--data-dir', path)
    await cli('db', 'restore', target, '--data-dir', elsewhere)

    expect([code, stderr]).toEqual([0, ''])
    expect(existsSync(join(path, 'restored'))).toBe(false)
    expect(readFileSync(join(elsewhere, 'token.key'))).toEqual(Buffer.alloc(32, 7))
  })

  it('is refused while another process holds the directory, or if the restore begins meanwhile', async () => {
    const path = interruptRestore('held')
    renameSync(join(path, 'restored'), join(path, 'hidden'))
    const unlock = lockDirectory(path)
    renameSync(join(path, 'hidden'), join(path, 'restored'))
    const target = join(folder, 'held.tar.gz')

    const refusal = await cli('db', 'backup', target, '--data-dir', path)
    const meanwhile = createBackup({ directory: path, file: target, now: 0 })

    expect([refusal.code, refusal.stderr]).toEqual([
      8,
      expect.stringMatching(/^another controller, .*\nTry: stop it first\n$/),
    ])
    await expect(meanwhile).rejects.toMatchObject({
      code: 'BACKUP_FAILED',
      message: expect.stringContaining('a restore'),
    })
    expect(existsSync(target)).toBe(false)
    unlock()
  })
})

describe('the data directory of a command on a database', () => {
  it('is by default that of the controller of the current profile, if this user has none', async () => {
    const operator = cleanEnvironment()
    const rootPem = readFileSync(join(directory, 'pki/root.crt'), 'utf8')
    writeProfiles(operator, { local: { url: 'https://127.0.0.1:9', rootPem } })
    await commandLine(['identity', 'list', ...offline], operator)
    const target = join(folder, 'by-profile.tar.gz')

    const backup = await commandLine(['db', 'backup', target], operator)
    const check = await commandLine(['db', 'check'], operator)
    const restore = await commandLine(['db', 'restore', target, '--yes', '-o', 'json'], operator)

    expect(backup.stdout).toContain(`from ${directory}`)
    expect(check.stdout).toContain(join(directory, 'controller.db'))
    expect(JSON.parse(restore.stdout)).toMatchObject({ directory })
  })

  it('is named with what helps if the address of a new one is incomplete', async () => {
    const fresh = join(folder, 'fresh')

    const { code, stderr } = await cli('init', '--data-dir', fresh, '--advertise', 'controller.example.com')

    expect(code).toBe(2)
    expect(stderr).toMatch(/not of the form host:port\nTry: --advertise NAME:PORT/)
  })
})

describe('before a question, it is an error', () => {
  it.each([
    ['db restore', () => ['db', 'restore', file]],
    ['db rotate-keys --sessions', () => ['db', 'rotate-keys', '--sessions']],
    ['cluster leave', () => ['cluster', 'leave']],
    ['admin recover', () => ['admin', 'recover']],
  ])('that a controller runs on the directory of %s', async (_command, words) => {
    const unlock = lockDirectory(directory)
    const { code, stderr } = await cli(...words(), '--data-dir', directory)
    unlock()

    expect([code, stderr]).toEqual([8, expect.stringMatching(/^another controller, .*\nTry: stop it first\n$/)])
  })

  it('that what db restore would read is not a backup, or is not opened by the passphrase', async () => {
    const sealed = join(folder, 'asked.age')
    const restore = (path: string, ...more: string[]) => cli('db', 'restore', path, '--data-dir', directory, ...more)
    await cli('db', 'backup', sealed, '--data-dir', directory, '--passphrase-file', passphraseFile)

    for (const [refusal, reason] of [
      [await restore(passphraseFile), 'is not a backup of a controller'],
      [await restore(sealed), 'is encrypted'],
      [await restore(file, '--passphrase-file', passphraseFile), 'is not encrypted, so that its passphrase'],
    ] as const)
      expect([refusal.code, refusal.stderr]).toEqual([2, expect.stringContaining(reason)])
  })
})

it('a folder in place of the file of a backup is refused, and no data directory is named', async () => {
  const { code, stderr } = await cli('db', 'verify', folder)

  expect([code, stderr]).toEqual([
    1,
    `${folder} cannot be used: it is a directory\nTry: name a file that this account can read\n`,
  ])
})

describe('the file of controller db backup', () => {
  const backUp = (target: string, ...more: string[]) => cli('db', 'backup', target, '--data-dir', directory, ...more)

  it('is never one of the data directory, except in its folder of backups', async () => {
    mkdirSync(join(directory, 'backups'), { recursive: true })
    const link = join(folder, 'link-to-the-data')
    symlinkSync(directory, link)
    const key = readFileSync(join(directory, 'audit.key'))

    for (const name of ['controller.db', 'audit.key', 'pki/new', 'new', 'backups.tar.gz']) {
      for (const path of [join(directory, name), join(link, name)]) {
        const { code, stderr } = await backUp(path, '--yes')
        expect([code, stderr], path).toEqual([2, expect.stringContaining('is inside the data directory')])
      }
    }
    expect(readFileSync(join(directory, 'audit.key'))).toEqual(key)
    expect((await backUp(join(directory, 'backups', 'mine'))).code).toBe(0)
  })

  it('replaces a backup unasked, and any other file only with --yes', async () => {
    const target = join(folder, 'replaced')
    const sealed = join(folder, 'replaced.age')
    writeFileSync(target, 'the only copy of something')

    const unasked = await backUp(target)
    const content = readFileSync(target, 'utf8')
    const codes = [
      await backUp(target, '--yes'),
      await backUp(target),
      await backUp(sealed, '--passphrase-file', passphraseFile),
      await backUp(sealed, '--passphrase-file', passphraseFile),
      await backUp(sealed),
    ].map(({ code }) => code)

    expect([unasked.code, unasked.stderr, content]).toEqual([
      2,
      expect.stringContaining('--yes'),
      'the only copy of something',
    ])
    expect(codes).toEqual([0, 0, 0, 0, 2])
  })

  it('is not looked for behind a symbolic link', async () => {
    const victim = join(folder, 'victim')
    writeFileSync(victim, 'kept')
    const [live, dangling] = [join(folder, 'live-link'), join(folder, 'dangling-link')]
    symlinkSync(victim, live)
    symlinkSync(join(folder, 'nothing'), dangling)

    const refusals = [await backUp(live, '--yes'), await backUp(dangling, '--yes')]

    for (const { code, stderr } of refusals)
      expect([code, stderr]).toEqual([2, expect.stringContaining('symbolic link')])
    expect(readFileSync(victim, 'utf8')).toBe('kept')
  })
})

describe('an interruption', () => {
  const sealed = join(folder, 'interrupted.age')
  const workspacesIn = (path: string) => readdirSync(path).filter((name) => /^\.?backup-|^restored/.test(name))
  // Each command derives its first key once it has a workspace. It waits there, because otherwise it could end before it is interrupted.
  const waiting = join(folder, 'waiting.cjs')
  const WAIT_FOR_KEY = `
    require('node:crypto').scrypt = () => void setTimeout(() => {}, 600_000)
    require('node:module').syncBuiltinESMExports()`
  const INTERRUPTIONS_MS = 90_000

  beforeAll(() => writeFileSync(waiting, WAIT_FOR_KEY))

  /** Sends a signal to a command once it has a workspace in a folder. */
  async function interrupt(signal: NodeJS.Signals, path: string, args: readonly string[], temporary = folder) {
    const more = ['--passphrase-file', passphraseFile]
    const child = spawn(process.execPath, [BINARY, 'db', ...args, ...more], {
      env: { ...env, TMPDIR: temporary, NODE_OPTIONS: `--require=${waiting}` },
      stdio: 'ignore',
    })
    const exit = once(child, 'exit')
    try {
      await expect.poll(() => workspacesIn(path)).toHaveLength(1)
      child.kill(signal)
      return (await exit) as [code: number | null, signal: string | null]
    } finally {
      child.kill('SIGKILL')
    }
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'of a backup, its verification or its restore by %s leaves no keys and no copy',
    {
      timeout: INTERRUPTIONS_MS,
    },
    async (signal, code) => {
      await cli('db', 'backup', sealed, '--data-dir', directory, '--passphrase-file', passphraseFile)
      const temporary = mkdtempSync(join(folder, 'temporary-'))
      const target = join(folder, `interrupted-by-${signal}`)
      const beside = mkdtempSync(join(folder, 'beside-'))

      const verification = await interrupt(signal, temporary, ['verify', sealed], temporary)
      const backup = await interrupt(signal, directory, ['backup', join(beside, 'new'), '--data-dir', directory])
      mkdirSync(target)
      const restore = await interrupt(signal, target, ['restore', sealed, '--data-dir', target])

      expect([verification[0], backup[0], restore[0]]).toEqual([code, code, code])
      expect([temporary, beside].map((path) => readdirSync(path))).toEqual([[], []])
      expect([directory, target].flatMap(workspacesIn)).toEqual([])
    },
  )

  it('of a backup by SIGKILL leaves its copy in the data directory, and the next command removes it', {
    timeout: INTERRUPTIONS_MS,
  }, async () => {
    const beside = mkdtempSync(join(folder, 'beside-'))

    await interrupt('SIGKILL', directory, ['backup', join(beside, 'new'), '--data-dir', directory])

    expect(readdirSync(beside).filter((name) => !name.endsWith('.new'))).toEqual([])
    expect(workspacesIn(directory)).toHaveLength(1)
    lockDirectory(directory)()
    expect(workspacesIn(directory)).toEqual([])
  })
})

describe('controller db restore', () => {
  it('asks, refuses a running controller, restores, and keeps what was there', async () => {
    await cli('identity', 'create', 'after', ...offline)
    const unasked = await cli('db', 'restore', file, '--data-dir', directory)
    const unlock = lockDirectory(directory)
    const running = await cli('db', 'restore', file, '--data-dir', directory, '--yes')
    unlock()
    const before = await names()

    const restore = await cli('db', 'restore', file, '--data-dir', directory, '--yes', '-o', 'json')

    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('--yes')])
    expect([running.code, running.stderr]).toEqual([8, expect.stringContaining('stop it first')])
    expect(before).toContain('after')
    expect(restore.code).toBe(0)
    const { replaced, directory: restored } = JSON.parse(restore.stdout)
    expect([restored, replaced]).toEqual([directory, expect.stringContaining(join(directory, 'before-restore-'))])
    expect(await names()).not.toContain('after')
    expect((await cli('db', 'check', '--data-dir', directory)).code).toBe(0)
  })

  it('makes a data directory where there is none', async () => {
    const target = join(folder, 'moved')

    const restore = await cli('db', 'restore', file, '--data-dir', target)
    const list = await cli('identity', 'list', '-o', 'name', '--offline', '--data-dir', target)

    expect(restore).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Next: controller serve --data-dir ${target}`),
    })
    expect(list.stdout).toContain('Default Admin')
    expect(readdirSync(target).filter((name) => name.startsWith('before-restore'))).toEqual([])
  })

  it('says whose the backup is, and asks before that of another network replaces a directory or a backup', async () => {
    const other = join(folder, 'other-network')
    const target = join(folder, 'other.tar.gz')
    const port = ['--advertise', 'other.example.com:1280', '--listen', '127.0.0.1:1280']
    const password = join(folder, 'password')
    writeFileSync(password, 'a long password\n')
    const init = await cli(
      'init',
      '--data-dir',
      other,
      ...port,
      '--admin-username',
      'admin',
      '--admin-password-file',
      password,
    )
    expect(init.code, init.stderr).toBe(0)

    const backup = await cli('db', 'backup', target, '--data-dir', other)
    const verification = JSON.parse((await cli('db', 'verify', target, '-o', 'json')).stdout)
    const replacement = await cli('db', 'backup', target, '--data-dir', directory)
    const restore = await cli('db', 'restore', target, '--data-dir', directory)
    const unlock = lockDirectory(directory)
    const running = await cli('db', 'restore', target, '--data-dir', directory)
    unlock()

    const owner = `other.example.com:1280 (root SHA-256 ${verification.rootFingerprint})`
    expect(verification).toMatchObject({ address: 'other.example.com:1280', rootFingerprint: expect.any(String) })
    expect(backup.stdout).toContain(`It is of ${owner}.`)
    expect(replacement).toMatchObject({ code: 2, stderr: expect.stringContaining(`another controller, ${owner}`) })
    expect(restore).toMatchObject({ code: 2, stderr: expect.stringContaining(`another network: ${owner}`) })
    expect(running).toMatchObject({ code: 8, stderr: expect.stringContaining('stop it first') })
  })

  it('leaves no directory that a failed restore made', async () => {
    const damaged = join(folder, 'damaged-for-new')
    writeFileSync(damaged, readFileSync(file).subarray(0, 5000))
    const target = join(folder, 'never-made')

    expect((await cli('db', 'restore', damaged, '--data-dir', target)).code).toBe(1)
    expect(existsSync(target)).toBe(false)
  })

  it('changes nothing if the file is damaged', async () => {
    const damaged = join(folder, 'damaged')
    writeFileSync(damaged, readFileSync(file).subarray(0, 5000))
    const before = await names()

    const { code, stderr } = await cli('db', 'restore', damaged, '--data-dir', directory, '--yes')

    expect([code, stderr]).toEqual([1, expect.stringMatching(/is damaged: .*\nTry: use another backup/)])
    expect(await names()).toEqual(before)
  })
})
