// The doctor: nothing in a healthy network, and for each fault one diagnosis with a remedy, before users notice.
import { chmodSync, chownSync, mkdtempSync, rmdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { disconnectedNetwork } from '../../src/access/live-network.ts'
import { unknownLiveState } from '../../src/access/live-state.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import { makeAuthority } from '../world/authorities.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { commands } from '../world/manifest.ts'

// An account without rights.
const UNPRIVILEGED = 65_534
const DAY_MS = 24 * 60 * 60_000

interface Diagnosis {
  readonly check: string
  readonly subject: string
  readonly message: string
  readonly remedy: string
}

let world: TestController
let token: string

interface Report {
  readonly checks: readonly { readonly name: string; readonly outcome: string }[]
  readonly diagnoses: readonly Diagnosis[]
}

beforeEach(() => open())
afterEach(() => world.close())

async function open(settings: Overrides = {}): Promise<void> {
  const network = { ...disconnectedNetwork, getPresence: () => 'offline' as const }
  world = await testController({ settings, live: { ...unknownLiveState, network } })
  token = await world.admin()
}

const send = (method: string, path: string, body?: unknown) =>
  world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })

async function create(plural: string, body: unknown): Promise<string> {
  const response = await send('POST', `/${plural}`, body)
  expect(response.status, JSON.stringify(response.body)).toBe(201)
  return response.body.data.id
}

/** Returns the diagnoses of some checks. The administrators of tests sign in without a credential, which does not count. */
async function diagnose(...checks: readonly string[]): Promise<Diagnosis[]> {
  const { status, body } = await send('GET', '/controller/doctor')
  expect(status).toBe(200)
  const { diagnoses, checks: results } = body.data as Report
  const failedChecks = results.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name)
  expect(new Set(diagnoses.map(({ check }) => check))).toEqual(new Set(failedChecks))
  for (const { message, remedy } of diagnoses) {
    expect(message).not.toBe('')
    expect(listUnknownWords(remedy), remedy).toEqual([])
  }
  const ofTests = (subject: string) => /^identity identity-\d+$/.test(subject)
  return diagnoses.filter(({ check, subject }) => (checks.length === 0 || checks.includes(check)) && !ofTests(subject))
}

/** The commands and flags in a remedy that do not exist. */
function listUnknownWords(remedy: string): string[] {
  const texts = remedy.split(/(?=\bcontroller [a-z])/).filter((text) => text.startsWith('controller '))
  return texts.flatMap((text) => {
    const [, first = '', second = ''] = text.split(/[\s,;:]+/)
    const command = commands[`${first}:${second}`] ?? commands[first]
    if (!command) return [`${first} ${second}`]
    const flags = new Set(['help', ...Object.keys(command.flags)])
    return Array.from(text.matchAll(/ --([a-z-]+)/g), ([, flag = '']) => flag).filter((flag) => !flags.has(flag))
  })
}

const identity = (name: string, more: object = {}) =>
  create('identities', { name, type: 'Device', isAdmin: false, ...more })
const service = (name: string, more: object = {}) => create('services', { name, encryptionRequired: true, ...more })
const policy = (name: string, more: object) =>
  create('service-policies', {
    name,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
    ...more,
  })

describe('the doctor', () => {
  it('finds nothing in a new network', async () => {
    // The disk of the machine that runs the tests is its own affair.
    expect((await diagnose()).filter(({ check }) => check !== 'disk')).toEqual([])
  })

  it('names roles of policies that match nothing, and not those that match', async () => {
    const laptop = await identity('laptop', { roleAttributes: ['staff'], enrollment: { ott: true } })
    await policy('web users', { identityRoles: ['#staf', '#staff', `@${laptop}`], serviceRoles: ['#all'] })

    const diagnoses = await diagnose('roles')

    expect(diagnoses).toEqual([
      {
        check: 'roles',
        subject: 'service-policy web users',
        message: 'identityRoles contains #staf, which matches no identity',
        remedy: expect.stringContaining("controller service-policy update 'web users'"),
      },
    ])
  })

  it('names policies that grant nothing', async () => {
    await service('web')
    await policy('empty', { identityRoles: [] })
    await policy('nothing', { serviceRoles: ['#none'] })
    await policy('useful', {})

    expect((await diagnose('policies')).map(({ subject }) => subject)).toEqual([
      'service-policy empty',
      'service-policy nothing',
    ])
  })

  it('names services without a host, and without a router that may carry them', async () => {
    const web = await service('web')
    await service('lonely')
    const router = await create('edge-routers', { name: 'north' })
    await create('terminators', { service: web, router, binding: 'transport', address: 'tcp:x:1' })
    await create('service-edge-router-policies', {
      name: 'carry web',
      semantic: 'AnyOf',
      serviceRoles: [`@${web}`],
      edgeRouterRoles: ['#all'],
    })

    const diagnoses = await diagnose('services')

    expect(diagnoses.map(({ subject, message }) => [subject, message.split(':')[0]])).toEqual([
      ['service lonely', 'nothing hosts it'],
      ['service lonely', 'no edge router may carry it'],
    ])
  })

  it('names routers that are not connected, and those that have not enrolled', async () => {
    await create('edge-routers', { name: 'north' })

    expect(await diagnose('routers')).toEqual([
      {
        check: 'routers',
        subject: 'edge-router north',
        message: 'it has not enrolled',
        remedy: 'controller edge-router get north -o jwt',
      },
    ])
  })

  it('names enrollments that expired, and identities that cannot sign in', async () => {
    await identity('late', { enrollment: { ott: true } })
    await identity('bare laptop')
    await identity('external', { externalId: 'someone@example' })
    await identity('of the type of routers', { type: 'Router' })
    await create('edge-routers', { name: 'tunneler', isTunnelerEnabled: true })
    world.clock.advance(DAY_MS)
    token = (await world.signIn({ name: 'later administrator', isAdmin: true })).token

    const diagnoses = await diagnose('enrollments', 'identities')

    expect(diagnoses.map(({ check, subject }) => [check, subject])).toEqual([
      ['enrollments', 'identity late'],
      ['enrollments', 'router tunneler'],
      ['identities', 'identity bare laptop'],
      ['identities', 'identity of the type of routers'],
      ['identities', 'identity later administrator'],
    ])
    expect(diagnoses[0]?.remedy).toMatch(/^controller enrollment refresh \S+, or: controller enrollment delete \S+$/)
  })

  it('names certificates that end soon, and those that have ended', async () => {
    await create('cas', {
      name: 'ours',
      certPem: (await makeAuthority()).pem,
      isAuthEnabled: true,
      isOttCaEnrollmentEnabled: false,
      isAutoCaEnrollmentEnabled: false,
      identityRoles: [],
    })
    expect(await diagnose('certificates')).toEqual([])
    world.clock.advance(40 * 365 * DAY_MS)
    token = (await world.signIn({ name: 'later administrator', isAdmin: true })).token

    const diagnoses = await diagnose('certificates')

    expect(diagnoses).toContainEqual({
      check: 'certificates',
      subject: expect.stringMatching(/^authority /),
      message: expect.stringMatching(/^the certificate ended at \d{4}-/),
      remedy: expect.stringContaining('controller ca create'),
    })
  })

  it('names files that other accounts have rights to', async () => {
    const { tokenKey } = getDataPaths(world.directory)
    chmodSync(tokenKey, 0o644)

    expect(await diagnose('files')).toEqual([
      expect.objectContaining({ subject: tokenKey, remedy: expect.stringContaining('chmod go= ') }),
    ])
    expect(statSync(tokenKey).mode & 0o777).toBe(0o644)
  })

  it('takes the rights of other accounts away when an administrator asks it to, and names each file', async () => {
    const { tokenKey, database } = getDataPaths(world.directory)
    chmodSync(tokenKey, 0o644)
    chmodSync(database, 0o640)

    const { status, body } = await send('POST', '/controller/doctor/fix')

    expect(status).toBe(200)
    expect(body.data.fixes.map(({ check, subject }: Diagnosis) => [check, subject])).toEqual(
      expect.arrayContaining([
        ['files', tokenKey],
        ['files', database],
      ]),
    )
    expect(await diagnose('files')).toEqual([])
    expect([tokenKey, database].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600])
  })

  it('notices a clock that was set back', async () => {
    world.clock.set(-100 * 365 * DAY_MS)

    expect((await diagnose('clock')).map(({ subject }) => subject)).toEqual(['system clock'])
  })

  it('notices that there are no backups, or no recent one', async () => {
    world.clock.advance(3 * DAY_MS)
    token = (await world.signIn({ name: 'later administrator', isAdmin: true })).token
    expect((await diagnose('backups')).map(({ message }) => message)).toEqual(['there is no backup'])

    await world.close()
    await open({ 'backup.every': 'off' })
    expect((await diagnose('backups')).map(({ remedy }) => remedy)).toEqual(['set backup.every in config.yaml'])
  })

  it('does not count a backup that a clock made that was ahead', async () => {
    world.clock.set(1000 * DAY_MS)
    await world.controller.backups.create('scheduled')
    world.clock.set(-1000 * DAY_MS)
    expect(await diagnose('backups')).toEqual([])

    world.clock.advance(3 * DAY_MS)
    token = (await world.signIn({ name: 'later administrator', isAdmin: true })).token
    expect((await diagnose('backups')).map(({ message }) => message)).toEqual([
      'every scheduled backup is dated in the future',
    ])
  })

  it.each([
    ['a folder for backups that is missing', 'backup.directory', /none, which is not a folder/],
    ['a passphrase file that is missing', 'backup.passphraseFile', /passphrase file \S+none cannot be read/],
  ])('names %s before a backup is due', async (_what, key, message) => {
    await world.close()
    await open({ [key]: join(world.directory, 'none') })

    expect(await diagnose('backups')).toEqual([
      expect.objectContaining({ message: expect.stringMatching(message), remedy: expect.stringContaining(key) }),
    ])
  })

  it('names a folder for backups that cannot be written to before a backup is due', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'backups-'))
    if (process.geteuid?.() === 0) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
    chmodSync(folder, 0o500)
    await world.close()
    await open({ 'backup.directory': folder })

    const diagnoses = await diagnose('backups')

    rmdirSync(folder)
    expect(diagnoses).toEqual([
      expect.objectContaining({
        message: `backup.directory names ${folder}, which cannot be written to: permission denied`,
        remedy: expect.stringContaining('ReadWritePaths'),
      }),
    ])
  })

  it('names an announcement that no listener carries', async () => {
    await world.close()
    await open({ 'oidc.announce': 'always', listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management'] }] })
    expect(await diagnose('settings')).toMatchObject([{ subject: 'oidc.announce' }])
    await world.close()
    await open({ 'oidc.announce': 'always', listeners: [{ address: '127.0.0.1:0' }] })
    expect(await diagnose('settings')).toEqual([])
  })

  it('names settings without an effect', async () => {
    await world.close()
    await open({ 'signers.allowHttp': true })

    expect((await diagnose('settings')).map(({ subject }) => subject)).toEqual(['signers.allowHttp'])
  })

  it('names signers without keys', async () => {
    await create('external-jwt-signers', {
      name: 'idp',
      issuer: 'https://idp.example',
      audience: 'network',
      enabled: true,
      jwksEndpoint: 'https://idp.example/keys',
    })

    expect((await diagnose('signers')).map(({ subject }) => subject)).toEqual(['external-jwt-signer idp'])
  })

  it('reports at most twenty of a kind', async () => {
    for (let i = 0; i < 25; i++) await service(`service ${String(i).padStart(2, '0')}`)

    expect(await diagnose('services')).toHaveLength(20)
  })
})
