// Enrollment tokens on the command line: how long they are valid, and identities that are made without one.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()
const folder = mkdtempSync(join(tmpdir(), 'tokens-'))
const world = useController()

beforeAll(async () => {
  const { token } = await People.in(world)
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token } })
})

const run = (...words: string[]) => commandLine(words, env)
const HOUR_MS = 60 * 60_000

/** How long a token is still valid, in hours. */
const hoursLeft = (jwt: string) => Math.round(((decodeJwt(jwt).exp ?? 0) * 1000 - Date.now()) / HOUR_MS)

describe('a token', () => {
  it.each([
    ['identity', 'laptop', []],
    ['edge-router', 'edge-north', []],
    ['router', 'transit-north', []],
    ['enrollment', 'of tablet', ['--identity', 'tablet', '--method', 'ott']],
  ])('of a new %s is valid as long as --expires-in says, and its end is shown', async (noun, name, flags) => {
    const file = join(folder, `${noun}.jwt`)
    if (noun === 'enrollment') await run('identity', 'create', 'tablet')
    const words = noun === 'enrollment' ? flags : [name]

    const { code, stderr } = await run(noun, 'create', ...words, '--expires-in', '24h', '--jwt-file', file)

    expect([code, stderr]).toEqual([0, expect.stringMatching(/^The token expires in 1 day, at \d{4}-/m)])
    expect(hoursLeft(readFileSync(file, 'utf8'))).toBe(24)
  })

  it('of an edge router that enrolls again is valid as long as --expires-in says', async () => {
    const file = join(folder, 'again.jwt')
    await run('edge-router', 'create', 'edge-again')
    const flags = ['--yes', '--expires-in', '24h', '--jwt-file', file]
    const { code, stderr } = await run('edge-router', 're-enroll', 'edge-again', ...flags)

    expect([code, stderr]).toEqual([0, expect.stringMatching(/The token expires in 1 day/)])
    expect(hoursLeft(readFileSync(file, 'utf8'))).toBe(24)
  })

  it('is made by --expires-in alone', async () => {
    const { code, stderr } = await run('identity', 'create', 'phone', '--expires-in', '2h')
    const { stdout } = await run('identity', 'get', 'phone', '-o', 'jwt')

    expect([code, stderr]).toEqual([0, expect.stringContaining('controller identity get phone -o jwt')])
    expect(hoursLeft(stdout)).toBe(2)
  })

  it('is shown with its end, apart from what a pipe reads', async () => {
    await run('identity', 'create', 'camera', '--ott')

    const { stdout, stderr } = await run('identity', 'get', 'camera', '-o', 'jwt')

    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(stderr).toMatch(/^The token expires in \d+ (hours|days), at \d{4}-/m)
  })

  it('that is refreshed takes its end by the name of before, too', async () => {
    await run('identity', 'create', 'watch', '--ott')
    const { items } = JSON.parse((await run('enrollment', 'list', '-o', 'json')).stdout)
    const { id } = items.find(({ identity }: { identity?: { name: string } }) => identity?.name === 'watch')

    const refreshed = await run(
      'enrollment',
      'refresh',
      id,
      '--expires-at',
      '5h',
      '--jwt-file',
      join(folder, 'watch.jwt'),
    )

    expect([refreshed.code, refreshed.stderr]).toEqual([0, expect.stringMatching(/expires in 5 hours/)])
  })
})

describe('an identity without a token', () => {
  it('is said to be unable to sign in, with the command that helps', async () => {
    const { code, stderr } = await run('identity', 'create', 'mute')
    const [, command = ''] = /^Try: controller (.*)$/m.exec(stderr) ?? []
    const helped = await run(...command.split(' '), '-o', 'jwt')

    expect([code, stderr]).toEqual([0, expect.stringContaining('mute cannot sign in yet')])
    expect([helped.code, hoursLeft(helped.stdout)]).toEqual([0, 3])
  })

  it.each([
    ['of an external id', ['--external-id', 'of-others']],
    ['that is asked for', ['--ott']],
  ])('is not spoken of if it has a way %s', async (_what, flags) => {
    const { stderr } = await run('identity', 'create', `way ${flags[0]}`, ...flags)

    expect(stderr).not.toContain('cannot sign in')
  })

  it('is asked about on a terminal: a token is the default', async () => {
    const { screen, code } = await onTerminal(['identity', 'create', 'asked'], env, {
      inputs: [['one-time token', ENTER]],
    })
    const { code: tokenCode } = await run('identity', 'get', 'asked', '-o', 'jwt')

    expect(plainText(screen)).toContain('controller identity get asked -o jwt')
    expect([code, tokenCode]).toEqual([0, 0])
  })

  it('is made on a terminal without a question if --no-ott says so', async () => {
    const { screen, code } = await onTerminal(['identity', 'create', 'unasked', '--no-ott'], env)

    expect(plainText(screen)).not.toContain('one-time token')
    expect(code).toBe(0)
    expect((await run('identity', 'get', 'unasked', '-o', 'jwt')).code).toBe(5)
    expect(existsSync(join(folder, 'unasked.jwt'))).toBe(false)
  })
})
