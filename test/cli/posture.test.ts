// The commands about posture, as administrators type them.
import { beforeAll, describe, expect, it } from 'vitest'
import { smallNetwork } from '../access/network.ts'
import { AuthenticatorApp } from '../world/authenticator-app.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
const env = cleanEnvironment()
const run = (...args: string[]) => commandLine(args, env)

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
  const network = await smallNetwork(world)
  await network.router('north')
  await network.openRouters()
  await network.service('web', ['web'])
  const domain = await network.make('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['a.b', 'c.d'] })
  const agent = await network.make('posture-checks', {
    name: 'agent',
    typeId: 'PROCESS',
    process: { osType: 'Linux', path: '/bin/agent' },
  })
  await network.make('posture-checks', { name: 'spare', typeId: 'MAC', macAddresses: ['aa'] })
  const roles = { name: 'web-users', postureCheckRoles: [`@${domain}`, `@${agent}`] }
  await network.servicePolicy('Dial', ['#staff'], ['#web'], roles)
  const open = { name: 'mail-users', postureCheckRoles: [`@${domain}`] }
  await network.service('mail', ['mail'])
  await network.servicePolicy('Dial', ['#staff'], ['#mail'], open)
  const laptop = await network.person('laptop', ['staff'])
  await network.person('silent', ['staff'])
  await network.report(laptop, { typeId: 'DOMAIN', domain: 'c.d' })
  await network.report(laptop, { id: agent, typeId: 'PROCESS', path: '/bin/agent', isRunning: false })
})

describe('identity posture', () => {
  it('shows what was reported, and which checks pass and why not', async () => {
    const { code, stdout } = await run('identity', 'posture', 'laptop')

    expect(code).toBe(0)
    expect(stdout).toMatch(/^laptop: 1 of 2 posture checks pass$/m)
    expect(stdout).toMatch(/^ {2}✗ agent {3}\/bin\/agent does not run \(demanded by web-users\)$/m)
    expect(stdout).toMatch(
      /^ {2}✓ domain {2}the machine reported c\.d \(demanded by (mail|web)-users, (mail|web)-users\)$/m,
    )
    expect(stdout).toMatch(/^ {2}process \/bin\/agent: does not run \(20.*Z\)$/m)
    expect(stdout).toMatch(/^ {2}domain: c\.d \(20.*Z\)$/m)
  })

  it('says that nothing was reported', async () => {
    const { stdout } = await run('identity', 'posture', 'silent')

    expect(stdout).toMatch(/^silent: 0 of 2 posture checks pass$/m)
    expect(stdout).toMatch(/^ {2}\? domain {2}the machine has not reported its domain/m)
    expect(stdout).toMatch(/^Its machines have not reported anything\.$/m)
  })

  it('is data for scripts, too', async () => {
    const { stdout } = await run('identity', 'posture', 'laptop', '-o', 'json')

    expect(JSON.parse(stdout)).toMatchObject({
      identity: { name: 'laptop' },
      postureChecks: [
        { name: 'agent', typeId: 'PROCESS', evidence: 'failing' },
        { name: 'domain', typeId: 'DOMAIN', evidence: 'passing', actualValue: 'c.d', expectedValue: ['a.b', 'c.d'] },
      ],
    })
  })

  it('knows no identity that does not exist', async () => {
    expect((await run('identity', 'posture', 'unknown')).code).toBe(5)
  })
})

describe('posture-check test', () => {
  it.each([
    ['domain', 'laptop', 0, 'laptop passes domain: the machine reported c.d'],
    ['agent', 'laptop', 3, 'laptop fails agent: /bin/agent does not run'],
    ['spare', 'laptop', 3, 'laptop may or may not pass spare: the machine has not reported its network addresses'],
  ])('of %s on %s exits with %#', async (check, identity, code, sentence) => {
    const finished = await run('posture-check', 'test', check, identity)

    expect([finished.code, finished.stdout.trim()]).toEqual([code, sentence])
  })

  it('does not pass if only some API sessions passed MFA', async () => {
    const people = await People.in(world)
    const person = await people.person()
    const token = await people.sessionOf(person)
    const send = (method: string, path: string, body?: object) =>
      world.send({ method, path: `${CLIENT}/current-identity/mfa${path}`, token, ...(body ? { body } : {}) })
    await send('POST', '', {})
    const app = new AuthenticatorApp((await send('GET', '')).body.data.provisioningUrl)
    expect((await send('POST', '/verify', { code: app.code(world.clock.now()) })).status).toBe(200)
    await people.manage('POST', '/posture-checks', { name: 'mfa', typeId: 'MFA', timeoutSeconds: -1 })

    const one = await run('posture-check', 'test', 'mfa', person.id)
    await people.signIn(person)
    const two = await run('posture-check', 'test', 'mfa', person.id)

    expect(two.stdout).toContain('may or may not pass mfa')
    expect([one.code, two.code]).toEqual([0, 3])
  })
})

describe('a change of a posture check', () => {
  it('that takes access says from whom, and is not made without a confirmation', async () => {
    const refused = await run('posture-check', 'update', 'domain', '--domains', 'a.b')

    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('1 identity would lose the right to 1 service (laptop).')
    expect((await run('posture-check', 'get', 'domain', '-o', 'json')).stdout).toContain('c.d')
  })

  it('that lets more machines pass says whom', async () => {
    const finished = await run('posture-check', 'update', 'domain', '--domains', 'a.b', '--domains', 'c.d', '--yes')
    expect(finished.code).toBe(0)
    await run('posture-check', 'update', 'domain', '--domains', 'a.b', '--yes')

    const question = await run('posture-check', 'update', 'domain', '--domains', 'a.b', '--domains', 'c.d')

    expect(question.stderr).toContain('1 identity would gain the right to 1 service (laptop).')
    await run('posture-check', 'update', 'domain', '--domains', 'a.b', '--domains', 'c.d', '--yes')
  })

  it('without an effect on access is made at once', async () => {
    expect((await run('posture-check', 'update', 'spare', '--mac-addresses', 'bb')).code).toBe(0)
  })

  it('that opens a gate names the policies, and asks', async () => {
    const { screen } = await onTerminal(['posture-check', 'delete', 'domain'], env, {
      inputs: [['Delete the posture check', `n${ENTER}`]],
    })

    const text = plainText(screen)
    expect(text).toContain('The policy mail-users would demand no posture check of 2 identities.')
    expect(text).toContain('The policy web-users would demand only 1 posture check of 2 identities.')
    expect(text).toContain('1 identity would gain the right to 1 service (silent).')
  })
})
