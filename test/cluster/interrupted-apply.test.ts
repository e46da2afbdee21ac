// Ctrl-C during `controller apply` before a load balancer, which sends the request to stop to another controller than the file.
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { MAX_RECORDS_PER_TRANSACTION } from '../../src/maintenance/network-file/apply.ts'
import { BINARY, cleanEnvironment, controller } from '../world/binary.ts'
import { TestCluster } from '../world/cluster.ts'
import type { TestController } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const RECORDS = 4_000
const SOON = { timeout: 60_000, interval: 20 }

const closing: { close(): unknown }[] = []
// After the cluster has closed.
afterEach(() => {
  for (const one of closing.splice(0)) one.close()
})
const world = useClusterPerTest(TestCluster)

/** Passes TLS through: each connection goes to the next of these addresses. Returns its URL. */
async function balance(urls: readonly string[]): Promise<string> {
  let count = 0
  const balancer = createServer((client) => {
    const port = Number(new URL(urls[count++ % urls.length] as string).port)
    const server = connect({ port, host: '127.0.0.1' })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const)
      socket.on('error', () => other.destroy()).on('close', () => other.destroy())
    client.pipe(server).pipe(client)
  })
  closing.push(balancer)
  await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve))
  return `https://127.0.0.1:${(balancer.address() as AddressInfo).port}`
}

async function countServices({ controller: { store } }: TestController): Promise<number> {
  const query = store.db.selectFrom('services').select((eb) => eb.fn.countAll().as('total'))
  return Number((await query.executeTakeFirstOrThrow()).total)
}

/** Follows which files a controller applies. */
function watchApplies({ controller: { applies } }: TestController) {
  const counts = { begun: 0, ended: 0 }
  const begin = applies.begin.bind(applies)
  applies.begin = (digest) => {
    const { signal, end } = begin(digest)
    counts.begun += 1
    return {
      signal,
      end() {
        counts.ended += 1
        end()
      },
    }
  }
  return counts
}

/**
 * Starts `apply` at the first of two controllers, whose connection to the database is slow.
 * @param slowDown makes that controller slow itself
 */
async function startApply(slowDown: (node: TestController) => void = () => {}) {
  const { proxy, url } = await TcpProxy.before(world.cluster.url)
  closing.push(proxy)
  const first = await world.cluster.open('first', { settings: { 'cluster.database': url } })
  const second = await world.cluster.open('second')
  const applies = watchApplies(first)
  slowDown(first)
  const token = await first.admin()
  await second.controller.store.catchUp()
  const [one, other] = [await first.listen(), await second.listen()]
  const env = cleanEnvironment()
  writeProfiles(env, { test: { url: await balance([one.url, other.url]), rootPem: one.rootPem, token } })
  const file = join(mkdtempSync(join(tmpdir(), 'controller-test-')), 'network.yaml')
  const records = Array.from({ length: RECORDS }, (_, at) => `  - name: service ${at}\n`).join('')
  writeFileSync(file, `version: 1\nservices:\n${records}`)
  const args = ['apply', '--yes', '-f', file]

  proxy.delayMs = 100
  const child = spawn(process.execPath, [BINARY, ...args], { env })
  let stderr = ''
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  return {
    proxy,
    applies,
    count: () => countServices(first),
    /** Presses Ctrl-C. Resolves with the exit code and the messages. */
    async interrupt() {
      child.kill('SIGINT')
      const code = await ended
      // The plan is above them.
      return { code, messages: stderr.split('\n').filter((line) => !line.startsWith('+ ')) }
    },
    continue: () => controller(args, env),
  }
}

it('is stopped by the end of its connection, and says that at least what it knows of is made', async () => {
  const apply = await startApply()
  await expect.poll(apply.count, SOON).toBeGreaterThan(0)
  const { code, messages } = await apply.interrupt()
  await expect.poll(() => apply.applies.ended, SOON).toBe(1)
  const count = await apply.count()
  const last = messages.find((line) => line.includes('interrupted: ')) ?? ''
  const knownCount = Number(/interrupted: at least (\d+) of 4000 changes are made$/.exec(last)?.[1])

  expect(code).toBe(130)
  expect(messages).toContainEqual(expect.stringMatching(/^stopping after the transaction under way/))
  expect(messages).toContainEqual(expect.stringContaining('Try: run the command again to continue'))
  expect(count).toBeLessThan(RECORDS)
  expect(knownCount).toBeGreaterThan(0)
  expect(count).toBeGreaterThanOrEqual(knownCount)

  apply.proxy.delayMs = 0
  expect((await apply.continue()).stdout).toContain(`${RECORDS - count} created`)
}, 180_000)

it('makes one transaction at most if its connection ends before the first one, and says that it does not know', async () => {
  const apply = await startApply(({ controller: { entities } }) => {
    const prepare = entities.prepareInsert.bind(entities)
    entities.prepareInsert = async (...args: Parameters<typeof prepare>) => {
      await setTimeout(1)
      return prepare(...args)
    }
  })
  await expect.poll(() => apply.applies.begun, SOON).toBe(1)
  const { code, messages } = await apply.interrupt()
  await expect.poll(() => apply.applies.ended, SOON).toBe(1)

  expect(code).toBe(130)
  expect(messages).toContainEqual(expect.stringContaining('interrupted: some changes may be made'))
  expect(await apply.count()).toBeLessThanOrEqual(MAX_RECORDS_PER_TRANSACTION)
}, 180_000)
