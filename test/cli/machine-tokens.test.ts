// Tokens of machines on the command line: they are made, used in the environment, listed and revoked.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()
const folder = mkdtempSync(join(tmpdir(), 'machine-tokens-'))
const rootFile = join(folder, 'root.pem')
const world = useController()
let url: string

beforeAll(async () => {
  const people = await People.in(world)
  const listening = await world.listen()
  url = listening.url
  writeFileSync(rootFile, listening.rootPem)
  writeProfiles(env, { test: { url, rootPem: listening.rootPem, token: people.token } })
  await people.identity({ name: 'ci', permissions: ['service', 'config'] })
})

const run = (...words: string[]) => commandLine(words, env)

/** Runs a command on a machine without profiles. */
const runBy = (token: string, ...words: string[]) =>
  commandLine(words, {
    ...cleanEnvironment(),
    CONTROLLER_URL: url,
    CONTROLLER_ROOT_FILE: rootFile,
    CONTROLLER_TOKEN: token,
  })

const create = (name: string, ...words: string[]) =>
  run('token', 'create', name, '--identity', 'ci', '--permission', 'service.read', '--expires-in', '90d', ...words)

describe('a token', () => {
  it('is printed once, and lets commands do what it may', async () => {
    const { code, stdout } = await create('nightly', '-o', 'json')
    const { token } = JSON.parse(stdout)

    expect(code).toBe(0)
    const services = await runBy(token, 'service', 'list', '-o', 'json')
    expect([services.code, services.stderr, JSON.parse(services.stdout).items]).toEqual([0, '', []])
    expect(await runBy(token, 'config', 'list')).toMatchObject({
      code: 7,
      stderr: expect.stringContaining('config.read'),
    })
    expect((await runBy(token, 'whoami')).stdout).toMatch(/^ci, not an administrator, at https:/)
    expect(JSON.parse((await runBy(token, 'whoami', '-o', 'json')).stdout)).toMatchObject({
      identityName: 'ci',
      sessionId: null,
      expiresAt: null,
    })
    const listed = await run('token', 'list')
    expect(listed.stdout).toContain('nightly')
    expect(listed.stdout).not.toContain(token)
  })

  it('is printed for people with its end', async () => {
    const { stdout } = await create('for people')

    expect(stdout).toMatch(/ectl_[A-Za-z0-9_-]{43}/)
    expect(stdout).toMatch(/expires at +\d{4}-/)
  })

  it('is masked where requests are shown', async () => {
    const { stdout } = await create('masked', '-o', 'json')
    const { token } = JSON.parse(stdout)
    const { stderr } = await runBy(token, 'service', 'list', '--show-request')

    expect(stderr).toContain('authorization: ***')
    expect(stderr).not.toContain(token)
  })

  it('that was revoked is refused, with what to do', async () => {
    const { stdout } = await create('revoked', '-o', 'json')
    const { token } = JSON.parse(stdout)

    expect((await run('token', 'delete', 'revoked', '--yes')).code).toBe(0)
    expect(await runBy(token, 'service', 'list')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('set CONTROLLER_TOKEN to another token'),
    })
  })

  it('has no session that logout could end', async () => {
    const { stdout } = await create('kept', '-o', 'json')

    expect(await runBy(JSON.parse(stdout).token, 'logout')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('controller token delete'),
    })
  })

  it('is not taken from the command line', async () => {
    expect((await run('service', 'list', '--token', 'ectl_x')).code).toBe(2)
  })
})
