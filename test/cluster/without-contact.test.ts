// Operations of a controller that may not know what the others have revoked: each one grants nothing, or waits.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { ContentType } from '../../server/control-channel/content-types.ts'
import { KINDS_THAT_GRANT_NOTHING } from '../../server/control-channel/message-dispatch.ts'
import { operations } from '../../server/operations/operations.ts'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults, expectFaults } from '../world/faults.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

let proxy: TcpProxy
let node: TestController

// After the cluster has closed.
afterEach(() => proxy?.close())
const world = useClusterPerTest(TestCluster)
beforeEach(async () => {
  const before = await TcpProxy.before(world.cluster.url)
  proxy = before.proxy
  node = await world.cluster.open('first', { settings: { 'cluster.database': before.url } })
  await node.controller.cluster?.lease.waitForContact()
})
afterEach(async () => {
  proxy.isHolding = false
  await node?.controller.cluster?.lease.waitForContact()
})

/** Lets the lease end while packets to the database are lost. */
function loseContact(): void {
  proxy.isHolding = true
  node.clock.advance(3_000)
}

describe('a controller without contact with the log of its cluster', () => {
  it('refuses all operations but those that grant nothing', async () => {
    expectFaults(/a request failed/)
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/, /5\d\d/)
    const token = await node.admin()
    loseContact()
    const routes = operations.flatMap((operation) => listRoutes(operation).map(({ path }) => ({ operation, path })))
    const outcomes = await Promise.all(
      routes.map(async ({ operation, path }) => {
        const request = { method: operation.method, path: path.replace(/:\w+/g, 'some-id'), token }
        const { status } = await node.send(request)
        return { id: operation.id, grantsNothing: operation.grantsNothing !== undefined, isRefused: status === 503 }
      }),
    )
    const isOfHealth = ({ id }: { id: string }) => id === 'showHealth'
    expect(outcomes.filter((each) => !isOfHealth(each) && each.isRefused === each.grantsNothing)).toEqual([])
    expect(outcomes.length).toBeGreaterThan(200)
  }, 60_000)

  it('goes on once there is contact again', async () => {
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/)
    const token = await node.admin()
    loseContact()
    const response = node.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token })
    proxy.isHolding = false
    expect((await response).status).toBe(200)
  })

  it('does not say that a session is unknown', async () => {
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/, /503/, /a request failed/)
    loseContact()
    const token = '00000000-0000-4000-8000-000000000000'
    const path = '/edge/client/v1/current-api-session/service-updates'
    expect((await node.send({ method: 'GET', path, token })).status).toBe(503)
  })
})

describe('a session that has ended', () => {
  it('is refused at once by a controller that knows its end, because nothing in the log can revive it', async () => {
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/)
    const { token } = await node.signIn({ isAdmin: true })
    const path = '/edge/client/v1/current-api-session'
    await node.send({ method: 'DELETE', path, token })
    // Within the lease.
    proxy.isHolding = true
    expect((await node.send({ method: 'GET', path, token })).status).toBe(401)
  })
})

describe('the operations that grant nothing', () => {
  it('are health, metrics, public information, what polls ask, and which controllers run', () => {
    const ids = operations.filter(({ grantsNothing }) => grantsNothing !== undefined).map(({ id }) => id)
    expect(ids.sort()).toEqual([
      'detailSpec',
      'detailSpecBody',
      'getCurrentAPISession',
      'listEnumeratedCapabilities',
      'listNodes',
      'listProtocols',
      'listRoot',
      'listServiceUpdates',
      'listSpecs',
      'listVersion',
      'showHealth',
      'showHealthChecks',
      'showLiveness',
    ])
  })

  it('do not include what routers ask for their clients', () => {
    const questions = [
      ContentType.CREATE_CIRCUIT_V2_REQUEST,
      ContentType.CREATE_CIRCUIT_FOR_SERVICE_REQUEST,
      ContentType.CREATE_TUNNEL_CIRCUIT_V2_REQUEST,
      ContentType.CREATE_TERMINATOR_V2_REQUEST,
      ContentType.VALIDATE_SESSIONS,
      ContentType.VERIFY_ROUTER,
    ]
    expect(questions.filter((type) => KINDS_THAT_GRANT_NOTHING.has(type))).toEqual([])
  })
})
