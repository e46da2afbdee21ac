// `controller pki …` and `controller certificate list`, and how the profiles of users learn a new root.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { PASSWORD, People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()

const world = useController()
let people: People
let url: string
let oldRootPem: string

beforeAll(async () => {
  people = await People.in(world)
  await world.controller.certificates.upkeep.runIfDue(world.system)
  ;({ url, rootPem: oldRootPem } = await world.listen())
  writeProfiles(env, { test: { url, rootPem: oldRootPem, token: people.token } })
})

const run = (...words: string[]): Promise<Finished> => commandLine([...words, '--profile', 'test'], env)

function pinnedRoots(): string {
  const file = join(env.XDG_CONFIG_HOME ?? '', 'controller', 'profiles.json')
  return JSON.parse(readFileSync(file, 'utf8')).profiles.test.rootPem
}

describe('the commands for certificates', () => {
  it('list what expires soon', async () => {
    const { code, stdout } = await run('certificate', 'list', '--expiring', '400d', '-o', 'json')
    const byDefault = await run('certificate', 'list', '--expiring', '-o', 'json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout).items.map(({ kind }: { kind: string }) => kind)).toEqual(['server'])
    expect(byDefault.code, byDefault.stderr).toBe(0)
    expect(JSON.parse(byDefault.stdout).items).toEqual([])
  })

  it('show the own certificates, and renew the server certificate', async () => {
    const before = JSON.parse((await run('pki', 'status', '-o', 'json')).stdout)
    world.clock.advance(1000)
    people = await People.in(world, 'second administrator')

    const renewed = await run('pki', 'renew')
    const after = JSON.parse((await run('pki', 'status', '-o', 'json')).stdout)

    expect(renewed.code).toBe(0)
    expect(after.server.fingerprint).not.toBe(before.server.fingerprint)
    expect(after.root).toEqual(before.root)
  })

  it('replace the intermediate, and leave pinned roots as they are', async () => {
    const { code, stdout } = await run('pki', 'rotate', 'intermediate', '--yes')

    expect([code, stdout]).toEqual([0, expect.stringContaining('was replaced')])
    expect(pinnedRoots()).toBe(oldRootPem)
  })

  it('ask before they replace anything', async () => {
    const { code } = await run('pki', 'rotate', 'root')

    expect(code).not.toBe(0)
    expect(world.controller.authority.previousRoot).toBeUndefined()
  })

  it('reject --finish for the intermediate', async () => {
    expect((await run('pki', 'rotate', 'intermediate', '--finish')).code).toBe(2)
  })
})

describe('the replacement of the root', () => {
  it('is learned by a profile with its next command, and stored as known to its identity', async () => {
    const device = await people.device({ name: 'silent device' })
    await people.person({ name: 'silent person' })

    const { code, stdout } = await run('pki', 'rotate', 'root', '--yes')
    const newRootPem = toCertificatePem(world.controller.authority.root)
    await run('whoami')

    expect([code, stdout]).toEqual([0, expect.stringContaining('3 have not fetched it yet')])
    expect(pinnedRoots()).toBe(newRootPem + oldRootPem)
    expect(device.chain).toContain('CERTIFICATE')
    const receipts = await world.controller.store.db.selectFrom('root_receipts').select('holderId').execute()
    expect(receipts).toHaveLength(1)
  })

  it('does not keep a user from signing in whose profile knows only the previous root', async () => {
    const other = cleanEnvironment()
    writeProfiles(other, { test: { url, rootPem: oldRootPem } })
    const { username } = await people.person({ name: 'returning user' })
    const passwordFile = join(other.HOME ?? '', 'password')
    writeFileSync(passwordFile, `${PASSWORD}\n`)

    const login = ['login', url, '--username', username, '--password-file', passwordFile, '--profile', 'test']
    const { code, stderr } = await commandLine(login, other)

    expect([code, stderr]).toEqual([0, ''])
  })

  it('is not ended while some do not know the new root, and names them', async () => {
    const { code, stderr } = await run('pki', 'rotate', 'root', '--finish')

    expect(code).toBe(6)
    expect(stderr).toContain('silent device')
    expect(stderr).toContain('--force')
  })

  it('ends by force, after which the profile knows the new root only', async () => {
    const { code } = await run('pki', 'rotate', 'root', '--finish', '--force', '--yes')
    await run('whoami')
    await run('whoami')

    expect(code).toBe(0)
    expect(pinnedRoots()).toBe(toCertificatePem(world.controller.authority.root))
  })
})
