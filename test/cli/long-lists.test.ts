// Lists that take long: they need little memory, show a progress bar, and end with an error if they are incomplete.
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { cleanEnvironment, controller } from '../world/binary.ts'
import { type ListServer, listServer } from '../world/list-server.ts'
import { writeProfiles } from '../world/profiles.ts'
import { CTRL_C, onTerminal } from '../world/terminal.ts'

let server: ListServer | undefined
afterEach(() => server?.close())

/** An environment signed in to a server that lists these. */
async function listing(total: number, items: () => AsyncIterable<object> | Iterable<object>) {
  server = await listServer(total, items)
  const env = cleanEnvironment()
  writeProfiles(env, { long: { url: server.url, rootPem: server.rootPem, token: 'any' } })
  return env
}

const identity = (n: number) => ({ id: `id-${n}`, name: `device-${n}`, isAdmin: false, roleAttributes: ['staff'] })

/** A record now, and one each time that a person would look again. */
async function* slowly(count: number): AsyncIterable<object> {
  for (let n = 0; n < count; n++) {
    yield identity(n)
    await delay(300)
  }
}

describe('a list of 100,000', () => {
  const COUNT = 100_000
  const appData = { note: 'x'.repeat(500) }

  function* many(): Iterable<object> {
    for (let n = 0; n < COUNT; n++) yield { ...identity(n), appData }
  }

  it.each(['jsonl', 'json', 'name'])('needs as much memory with -o %s as a few would', async (format) => {
    const env = await listing(COUNT, many)

    // The records are 60 MB of JSON; a process that held them all would run out of memory.
    const { code, stdout, stderr } = await controller(['identity', 'list', '-o', format], {
      ...env,
      NODE_OPTIONS: '--max-old-space-size=40',
    })

    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toContain('device-0')
    expect(stdout.match(/device-\d+/g)).toHaveLength(COUNT)
  })
})

describe('a list that takes its time', () => {
  it('shows a person how far it has come, and wipes that in the end', async () => {
    const env = await listing(6, () => slowly(6))

    const { screen, code } = await onTerminal(['identity', 'list'], env)

    expect(screen).toMatch(/identities \[#+-+\] \d of 6/)
    expect(screen).toContain('\r\u001b[KNAME')
    expect(code).toBe(0)
  })

  it('shows a program nothing but the list', async () => {
    const env = await listing(6, () => slowly(6))

    const { stdout, stderr } = await controller(['identity', 'list', '-o', 'name'], env)

    expect(stderr).toBe('')
    expect(stdout.trim().split('\n')).toHaveLength(6)
  })

  it('ends with 130 when it is interrupted', async () => {
    const env = await listing(60, () => slowly(60))

    const { code } = await onTerminal(['identity', 'list'], env, { inputs: [['of 60', CTRL_C]] })

    expect(code).toBe(130)
  })
})

describe('a list that breaks off', () => {
  it('is said to be broken, with 8, although some of it was printed', async () => {
    const env = await listing(3, async function* () {
      yield* slowly(2)
      throw new Error('the controller dies')
    })

    const { code, stdout, stderr } = await controller(['identity', 'list', '-o', 'jsonl'], env)

    expect(code).toBe(8)
    expect(JSON.parse(stderr)).toMatchObject({ code: 'UNREACHABLE' })
    expect(stdout.split('\n').length).toBeLessThan(4)
  })
})
