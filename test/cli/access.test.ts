// `controller access` and `policy advise --me`: what a device learns of its own access, without any right of an administrator.
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const administrator = cleanEnvironment()
const device = cleanEnvironment()
const world = useController()

beforeAll(async () => {
  const people = await People.in(world)
  const { url, rootPem } = await world.listen()
  writeProfiles(administrator, { test: { url, rootPem, token: people.token } })
  const person = await people.person({ name: 'anna', roleAttributes: ['staff'] })
  writeProfiles(device, { test: { url, rootPem, token: await people.sessionOf(person) } })
  await as(administrator, 'service', 'create', 'web', '--role', 'web')
  await as(administrator, 'service', 'create', 'secret')
  const roles = ['--identity-roles', '#staff', '--service-roles', '#web']
  await as(administrator, 'posture-check', 'create', 'code', '--type', 'MFA')
  const policy = ['service-policy', 'create', 'web-users', '--type', 'Dial', ...roles]
  await as(administrator, ...policy, '--posture-check-roles', '@code')
  await as(administrator, 'service-policy', 'create', 'web-hosts', '--type', 'Bind', ...roles)
})

const as = (env: NodeJS.ProcessEnv, ...words: string[]) => commandLine(words, env)

describe('an end user at a listener without the client API', () => {
  it('learns by whoami who it is', async () => {
    const listeners = [{ address: '127.0.0.1:0', apis: ['management'], dialect: 'native' }]
    const other = await testController({ settings: { listeners } })
    try {
      const people = await People.in(other)
      const { url, rootPem } = await other.listen()
      const env = cleanEnvironment()
      writeProfiles(env, {
        test: { url, rootPem, token: await people.sessionOf(await people.person({ name: 'bert' })) },
      })

      const { code, stdout } = await as(env, 'whoami')

      expect([code, stdout]).toEqual([0, expect.stringMatching(/^bert, not an administrator/)])
    } finally {
      await other.close()
    }
  })
})

describe('an end user', () => {
  it('lists what policies grant, and what is missing, and nothing else', async () => {
    const { code, stdout, stderr } = await as(device, 'access', '-o', 'json')

    const { items } = JSON.parse(stdout)
    expect([code, stderr]).toEqual([0, ''])
    expect(items).toHaveLength(1)
    expect(items[0]).toMatchObject({ name: 'web', dial: 'blocked', host: 'yes', allowed: ['Bind'], routers: [] })
    expect(items[0].missing).toEqual([
      expect.stringMatching(/^dialing requires a code of your second factor/),
      'no policy lets you use an edge router for it',
      'no host offers it at the moment',
    ])
  })

  it.each([
    ['access', 'web'],
    ['policy', 'advise', '--me', 'web'],
  ])('is told by %s %s what is missing for one service', async (...words) => {
    const { code, stdout } = await as(device, ...words)

    expect(code).toBe(3)
    expect(stdout).toMatch(/^ +missing +dialing requires a code of your second factor/m)
  })

  it('learns nothing of services that no policy grants', async () => {
    const [existing, unknown] = [await as(device, 'access', 'secret'), await as(device, 'access', 'nothing')]

    expect([existing.code, unknown.code]).toEqual([5, 5])
    expect(existing.stderr.replaceAll('secret', 'NAME')).toBe(unknown.stderr.replaceAll('nothing', 'NAME'))
  })

  it('is pointed there by whoami, and by commands that are for administrators', async () => {
    const [whoami, summary] = [await as(device, 'whoami'), await as(device, 'summary')]

    expect(whoami.stdout).toMatch(/1 service.*controller access/s)
    expect([summary.code, summary.stderr]).toEqual([7, expect.stringContaining('controller access')])
  })
})

describe('an administrator', () => {
  it('is shown the whole chain of their own access', async () => {
    const { code, stdout } = await as(administrator, 'policy', 'advise', '--me', 'web')

    expect([code, stdout]).toEqual([3, expect.stringMatching(/✗ service policy/)])
  })
})
