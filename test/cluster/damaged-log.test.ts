// Commits that are taken, changed or exchanged in the database while controllers run: the chain finds it, and the doctor names the commit.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000 }

const world = useClusterPerTest(ClusterDirectories)
let proxy: TcpProxy
let ahead: TestController
let behind: TestController
let failures: Error[]
let token: string

beforeEach(async () => {
  allowFaults(/./)
  failures = []
  const fail = (error: Error) => void failures.push(error)
  const first = await world.cluster.begin()
  const second = await world.cluster.join(first, 'two')
  const behindProxy = await TcpProxy.before(world.cluster.url)
  proxy = behindProxy.proxy
  ahead = await world.cluster.open(first, { fail })
  const settings = { advertise: ['two.example:1280'], 'cluster.database': behindProxy.url }
  behind = await world.cluster.open(second, { settings, fail })
  token = (await ahead.signIn({ isAdmin: true })).token
  await behind.controller.cluster?.catchUp()
}, 90_000)
afterEach(() => proxy?.close())

const list = (at: TestController) => at.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })

/** Four commits that one controller has not read. Returns the position of the first. */
async function commitUnread(): Promise<number> {
  proxy.isHolding = true
  const before = ahead.controller.store.position
  for (let number = 0; number < 4; number += 1) {
    const body = { name: `service ${number}`, encryptionRequired: true }
    expect((await ahead.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body })).status).toBe(201)
  }
  return before + 1
}

describe('a log in which', () => {
  it.each([
    [
      'a commit was deleted',
      'delete from controller.commits where position = $1',
      /has no commit .*, and goes on with/,
    ],
    [
      'a commit was changed',
      'update controller.commits set payload = set_byte(payload, 40, get_byte(payload, 40) # 1) where position = $1',
      /does not follow the one before it/,
    ],
    [
      'two commits were exchanged',
      `update controller.commits as one set chain = other.chain, payload = other.payload from controller.commits as other
       where one.position in ($1::int, $1::int + 1) and other.position = 2 * $1::int + 1 - one.position`,
      /does not follow the one before it/,
    ],
  ])(
    '%s is applied by no controller that has not read it, and named by the doctor',
    async (_name, damage, reason) => {
      const position = await commitUnread()
      await world.cluster.sql(damage, [position + 1])
      proxy.isHolding = false
      proxy.breakConnections()

      await expect
        .poll(async () => behind.controller.cluster?.catchUp().then(String, () => 'refused'), SOON)
        .toBe('refused')
      expect(behind.controller.store.position).toBeLessThanOrEqual(position)
      // The clock of the tests stands still; that of the lease, too.
      behind.clock.advance(behind.controller.config['cluster.lease'])
      expect((await list(behind)).status).toBe(503)
      expect(failures).toEqual([])
      for (const { controller, system } of [ahead, behind]) {
        const { diagnoses } = await controller.doctor.diagnose(system)
        const [diagnosis] = diagnoses.filter(
          ({ check, subject }) => check === 'log of the cluster' && subject === 'log',
        )
        expect(diagnosis?.message).toMatch(reason)
        expect(diagnosis?.message).toContain(String(position + 1))
      }
    },
    90_000,
  )
})
