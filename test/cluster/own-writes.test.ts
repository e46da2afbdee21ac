// Changes that a client made at one controller, and what it finds at another one just afterwards.
import { beforeEach, describe, expect, it } from 'vitest'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const world = useClusterPerTest(TestCluster)
let first: TestController
let second: TestController

beforeEach(async () => {
  first = await world.cluster.open('first')
  second = await world.cluster.open('second')
})

const create = (name: string, token: string) =>
  first.send({
    method: 'POST',
    path: `${MANAGEMENT}/identities`,
    token,
    body: { name, type: 'Default', isAdmin: false },
  })

describe('a client that changes the controller', () => {
  it('is known there at once after its sign-in', async () => {
    for (let times = 0; times < 10; times += 1) {
      const { token } = await first.signIn({ isAdmin: true })
      const { status } = await second.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token })
      expect(status).toBe(200)
    }
  })

  it('finds there at once by its id what it has just created', async () => {
    const token = await first.admin()
    for (let times = 0; times < 10; times += 1) {
      const { body } = await create(`created ${times}`, token)
      const path = `${MANAGEMENT}/identities/${body.data.id}`
      expect((await second.send({ method: 'GET', path, token })).status).toBe(200)
    }
  })

  it('finds it in lists if it says how far it has seen', async () => {
    const token = await first.admin()
    for (let times = 0; times < 10; times += 1) {
      const name = `listed ${times}`
      const { headers } = await create(name, token)
      const path = `${MANAGEMENT}/identities?filter=${encodeURIComponent(`name = "${name}"`)}`
      const position = String(headers['controller-position'])
      const { body } = await second.send({ method: 'GET', path, token, headers: { 'controller-position': position } })
      expect(body.data).toHaveLength(1)
    }
  })

  it('waits in vain for a position that the log does not reach', async () => {
    expectFaults(/a request failed/, /503/)
    const token = await first.admin()
    const headers = { 'controller-position': String(Number.MAX_SAFE_INTEGER) }
    const response = await second.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token, headers })
    expect([response.status, response.headers['retry-after']]).toEqual([503, '1'])
  })

  it.each(['', '-1', 'x', '1e3', '99999999999999999999'])('is refused if it says %j of the position', async (text) => {
    const token = await first.admin()
    const headers = { 'controller-position': text }
    const response = await second.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token, headers })
    expect(response.status).toBe(400)
  })
})

describe('an unknown session', () => {
  it('is refused, and however many ask with one read the log a few times only', async () => {
    const { commitLog } = second.controller.cluster as NonNullable<typeof second.controller.cluster>
    let readings = 0
    const read = commitLog.readAfter.bind(commitLog)
    commitLog.readAfter = (...parameters) => {
      readings += 1
      return read(...parameters)
    }
    const startedAt = performance.now()
    const token = '00000000-0000-4000-8000-000000000000'
    const responses = await Promise.all(
      Array.from({ length: 500 }, () => second.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token })),
    )
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]))
    expect(readings).toBeLessThan((performance.now() - startedAt) / 5 + 2)
  })
})
