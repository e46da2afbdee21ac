// `controller events watch`: one line an event, over lost connections, until Ctrl-C.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BINARY, cleanEnvironment, controller } from '../world/binary.ts'
import { type TestController, testController } from '../world/controller.ts'
import { enrolledFile } from '../world/enrollments.ts'
import { findFreePort } from '../world/free-port.ts'
import { managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'

let world: TestController
let settings: object
let address: { readonly url: string; readonly rootPem: string }
let env: NodeJS.ProcessEnv
const children: ChildProcess[] = []

beforeEach(async () => {
  const listener = `127.0.0.1:${await findFreePort()}`
  settings = { listeners: [{ address: listener, dialect: 'native' }], advertise: [listener] }
  world = await testController({ settings })
  address = await world.listen()
  env = cleanEnvironment()
  writeProfiles(env, { here: { url: address.url, rootPem: address.rootPem, token: await world.admin() } })
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await world.close()
})

/** A command that watches events now. */
async function watching(...args: string[]) {
  const child = spawn(process.execPath, [BINARY, 'events', 'watch', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const printed = { stdout: '', stderr: '' }
  child.stdout.on('data', (piece: Buffer) => (printed.stdout += piece))
  child.stderr.on('data', (piece: Buffer) => (printed.stderr += piece))
  const ended = once(child, 'close')
  await expect.poll(() => world.controller.events.watcherCount, { timeout: 20_000 }).toBe(1)
  return {
    printed,
    ended,
    async interrupt() {
      child.kill('SIGINT')
      const [code] = await ended
      return code as number | null
    },
  }
}

const makeService = async (name: string) =>
  (await managementOf(world)).make('services', { name, encryptionRequired: false })

const readLines = ({ stdout }: { stdout: string }) => stdout.trim().split('\n').filter(Boolean)

describe('events watch', () => {
  it('prints one line an event for people, and Ctrl-C ends it with exit code 0', async () => {
    const { printed, interrupt } = await watching('--subject', 'services')
    const id = await makeService('web')
    await (await managementOf(world)).change('PATCH', `/services/${id}`, { name: 'shop' })
    await expect
      .poll(() => readLines(printed))
      .toEqual([
        expect.stringMatching(/^\d\d:\d\d:\d\d {2}record-created +services web by administrator \S+ from \S+$/),
        expect.stringMatching(
          /^\d\d:\d\d:\d\d {2}record-updated +services shop by administrator \S+ from \S+ \(name\)$/,
        ),
      ])
    expect([await interrupt(), printed.stderr]).toEqual([0, ''])
  })

  it('goes on behind the last event when the controller has restarted, with the cursor of each for scripts', async () => {
    const { printed, interrupt } = await watching('--subject', 'services', '--type', 'record-created', '-o', 'jsonl')
    await makeService('before')
    await expect.poll(() => readLines(printed)).toHaveLength(1)
    const { directory, clock } = world
    await world.stop()
    world = await testController({ directory, clock, settings })
    await makeService('meanwhile')
    await world.listen()

    await expect.poll(() => readLines(printed), { timeout: 20_000 }).toHaveLength(2)
    const events = readLines(printed).map((line) => JSON.parse(line))
    expect(events.map(({ audit }) => audit.entityName)).toEqual(['before', 'meanwhile'])
    expect(printed.stderr).toMatch(/connection was lost[\s\S]*Connected again/)
    expect(await interrupt()).toBe(0)
    const again = await watching('--since', events[0].cursor, '--type', 'record-created', '-o', 'jsonl')
    await expect.poll(() => again.printed.stdout).toContain('meanwhile')
  })

  it('ends as every command does when its session has ended', async () => {
    const { id } = await world.signIn({ isAdmin: true })
    const { apiSessionId, token } = await world.signInAgain(id)
    writeProfiles(env, { here: { url: address.url, rootPem: address.rootPem, token } })
    const { ended, printed } = await watching()
    await (await managementOf(world)).change('DELETE', `/api-sessions/${apiSessionId}`)

    const [code] = await ended
    expect(code).toBe(4)
    expect(printed.stderr).toContain('Try: controller login')
  })

  it('goes on over any number of sessions that end, if an identity file can begin another', async () => {
    const people = await People.in(world)
    const { identityId: id, file } = await enrolledFile({ people }, { isAdmin: true })
    const manage = await managementOf(world)
    const endSessions = async () => {
      const filter = encodeURIComponent(`identity = "${id}"`)
      for (const session of await manage.get(`/api-sessions?filter=${filter}`))
        await manage.change('DELETE', `/api-sessions/${session.id}`)
    }
    writeProfiles(env, { here: { ...address, token: randomUUID(), identityFile: file } })
    const { printed, interrupt } = await watching('--subject', 'services', '--type', 'record-created', '-o', 'jsonl')
    for (const name of ['one', 'two', 'three']) {
      await endSessions()
      await expect.poll(() => world.controller.events.watcherCount, { timeout: 20_000 }).toBe(0)
      await expect.poll(() => world.controller.events.watcherCount, { timeout: 20_000 }).toBe(1)
      await makeService(name)
    }

    await expect.poll(() => readLines(printed)).toHaveLength(3)
    expect(await interrupt()).toBe(0)
  }, 60_000)

  it('refuses formats that need the whole list, and types that do not exist', async () => {
    expect((await controller(['events', 'watch', '-o', 'yaml'], env)).code).toBe(2)
    expect((await controller(['events', 'watch', '--type', 'weather'], env)).code).toBe(2)
  })
})
