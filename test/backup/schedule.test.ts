// Scheduled backups: when they are due, how many are kept, and what is left of those that were interrupted.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { verifyBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { copyOfTemplate, type TestController, testController } from '../world/controller.ts'
import { withFullDisk } from '../world/full-disk.ts'

const HOUR_MS = 60 * 60_000
let world: TestController

afterEach(() => world?.close())

/** A controller whose data directory is new by its own clock. */
async function open(settings: Overrides): Promise<TestController> {
  world = await testController({ settings })
  const now = world.clock.now() / 1000
  utimesSync(getDataPaths(world.directory).config, now, now)
  return world
}

const names = () => world.controller.backups.list().map(({ name }) => name)

describe('scheduled backups', () => {
  it('are made when they are due, and the oldest are deleted', async () => {
    const { clock, controller } = await open({ 'backup.every': '1h', 'backup.keep': 2 })
    await controller.backups.runIfDue()
    expect(names()).toEqual([])

    const newest: string[] = []
    for (let hour = 0; hour < 3; hour++) {
      clock.advance(HOUR_MS)
      await controller.backups.runIfDue()
      await controller.backups.runIfDue()
      newest.push(names().at(-1) ?? '')
    }

    expect(new Set(newest).size).toBe(3)
    expect(names()).toEqual(newest.slice(1))
    expect((await verifyBackup({ file: join(controller.backups.folder, newest[2] ?? '') })).findings).toEqual([])
  })

  it('are made although a clock that was ahead made the settings and earlier ones, of which they take the place', async () => {
    const { clock, controller } = await open({ 'backup.keep': 2 })
    const later = clock.now() / 1000 + 1000 * 24 * 60 * 60
    utimesSync(getDataPaths(world.directory).config, later, later)
    await controller.backups.runIfDue()
    const early = names()
    for (const days of [900, 1000]) {
      clock.set(days * 24 * HOUR_MS)
      await controller.backups.create('scheduled')
      clock.set(-days * 24 * HOUR_MS)
    }
    const ahead = names()

    clock.advance(25 * HOUR_MS)
    await controller.backups.runIfDue()
    const mixed = names()
    clock.advance(25 * HOUR_MS)
    await controller.backups.runIfDue()

    expect([early.length, ahead.length]).toEqual([1, 2])
    expect(mixed).toEqual([expect.any(String), ahead[1]])
    expect(names()).toEqual([mixed[0], expect.any(String)])
    expect(names()).not.toContain(ahead[1])
  })

  it('are not made once more after the clock was set back a little', async () => {
    const { clock, controller } = await open({})
    await controller.backups.create('scheduled')
    clock.set(-60_000)
    await controller.backups.runIfDue()

    expect(names()).toHaveLength(1)
  })

  it('do not make room by deleting those of other kinds, and nothing else in the folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'backups-'))
    const { clock, controller } = await open({ 'backup.directory': folder, 'backup.keep': 1 })
    writeFileSync(join(folder, 'mine.tar.gz'), '')
    // Such as `controller db backup` writes there at the moment.
    writeFileSync(join(folder, 'controller-weekly.tar.gz.0123456789ab.new'), '')
    const leftover = join(world.directory, '.backup-abcdef')
    mkdirSync(leftover)
    writeFileSync(join(folder, 'controller-20260101-000000000-scheduled.tar.gz.0123456789ab.new'), '')
    await controller.backups.create('snapshot')
    clock.advance(25 * HOUR_MS)
    await controller.backups.runIfDue()

    expect(controller.backups.list().map(({ kind }) => kind)).toEqual(['snapshot', 'scheduled'])
    const others = ['controller-weekly.tar.gz.0123456789ab.new', 'mine.tar.gz']
    expect(readdirSync(folder)).toEqual([...names(), ...others].sort())
    expect(existsSync(leftover)).toBe(false)
    rmSync(folder, { recursive: true })
  })

  it.each(['scheduled', 'snapshot'] as const)('that fail delete none of those before: %s', async (kind) => {
    const { clock, controller } = await open({ 'backup.keep': 1 })
    await controller.backups.create(kind)
    const before = names()
    clock.advance(HOUR_MS)
    rmSync(getDataPaths(world.directory).secretsKey)

    await expect(controller.backups.create(kind)).rejects.toMatchObject({
      code: 'BACKUP_FAILED',
      message: expect.stringContaining('secrets.key is missing'),
    })

    expect(names()).toEqual(before)
  })

  it('are refused until there is room if the disk takes no folder for them', async () => {
    const { controller } = await open({})

    const snapshot = withFullDisk('mkdirSync', () => controller.backups.createSnapshot())

    await expect(snapshot).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await controller.backups.createSnapshot()
    expect(names()).toHaveLength(1)
  })

  it('can be turned off', async () => {
    const { clock, controller } = await open({ 'backup.every': 'off' })
    clock.advance(1000 * HOUR_MS)
    await controller.backups.runIfDue()

    expect(names()).toEqual([])
  })

  it('name the address that is in force, whatever the settings in the directory say', async () => {
    const { controller } = await open({ advertise: ['in-force.example.com:1280'] })

    const { owner } = await controller.backups.create('scheduled')

    expect(owner.address).toBe('in-force.example.com:1280')
  })

  it('are encrypted if a passphrase file is configured', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'backups-'))
    const passphraseFile = join(folder, 'passphrase')
    writeFileSync(passphraseFile, 'correct horse battery\n')
    const { controller } = await open({ 'backup.passphraseFile': passphraseFile })

    const { file, isEncrypted } = await controller.backups.create('scheduled')

    expect([file.endsWith('-scheduled.tar.gz.age'), isEncrypted]).toEqual([true, true])
    expect((await verifyBackup({ file, passphrase: 'correct horse battery' })).findings).toEqual([])
    rmSync(folder, { recursive: true })
  })

  it('that run when the controller stops are ended, and leave nothing', async () => {
    const { controller } = await open({})
    const backup = controller.backups.create('scheduled').catch((error: Error) => error)
    // Long enough for the thread to exist, and too short for it to finish.
    await new Promise((resolve) => setTimeout(resolve, 20))
    await controller.backups.close()

    const outcome = await backup
    const isInterrupted = outcome instanceof Error
    expect(readdirSync(controller.backups.folder)).toHaveLength(isInterrupted ? 0 : 1)
  })
})

describe('settings by which no backup can be made', () => {
  it.each([
    ['CONTROLLER_BACKUP_DIRECTORY', /backup\.directory.*not a folder/],
    ['CONTROLLER_BACKUP_PASSPHRASE_FILE', /passphrase file .*cannot be read/],
  ])('are an error in the log of the start: %s', async (variable, reason) => {
    const words = [BINARY, 'serve', '--data-dir', copyOfTemplate(), '--listen', '127.0.0.1:0']
    const env = { ...cleanEnvironment(), [variable]: '/none/at/all' }

    const { stderr } = await run(process.execPath, words, env, { until: /"listening"/ })

    const line = stderr.split('\n').find((text) => text.includes('backups cannot be made'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 50, reason: expect.stringMatching(reason) })
  })
})
