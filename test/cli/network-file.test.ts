// The network as a file on the command line, over HTTPS and offline.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { fileResources } from '../../src/network-file/file-resources.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { configureNetwork } from '../world/configured-network.ts'
import { type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'

let world: TestController
const env = cleanEnvironment()

beforeAll(async () => {
  world = await testController()
  const { url, rootPem } = await world.listen()
  const people = await People.in(world, 'operator')
  writeProfiles(env, { test: { url, rootPem, token: people.token } })
  await configureNetwork(people)
})
afterAll(() => world?.close())

const cli = (...args: string[]) => commandLine(args, env)

describe('export', () => {
  it('writes YAML with a section for every resource', async () => {
    const { code, stdout, stderr } = await cli('export')

    expect(stderr).toBe('')
    expect(code).toBe(0)
    const content = parse(stdout)
    expect(Object.keys(content)).toEqual(['version', ...fileResources.map(({ resource }) => resource.plural)])
    expect(content.version).toBe(1)
    expect(content.configs).toMatchObject([{ name: 'web-host', configType: 'host.v1', data: { port: 8080 } }])
    expect(content['controller-settings']).toEqual([])
  })

  it('says in its head what it does not hold', async () => {
    const { stdout } = await cli('export')

    expect(stdout).toMatch(/^# [^\n]*controller export/)
    expect(stdout.split('\nversion:')[0]).toMatch(/credentials/)
  })

  it('writes YAML only', async () => {
    const { code, stdout, stderr } = await cli('export', '-o', 'json')

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('YAML')
  })

  it('writes the same offline', async () => {
    const online = await cli('export')
    await world.stop()

    const offline = await cli('export', '--offline', '--data-dir', world.directory)

    expect(offline.stderr).toBe('')
    expect(offline.stdout).toBe(online.stdout)
    world = await testController({ directory: world.directory })
  })
})
