// An adopted network that begins a cluster: each of its controllers continues the network of the former one.
import type { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { beginCluster } from '../../server/cluster/begin-cluster.ts'
import { joinCluster } from '../../server/cluster/join-cluster.ts'
import { adoptNetwork } from '../../src/adopt.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, TestClock, type TestController, testController } from '../world/controller.ts'
import { TestPostgres } from '../world/postgres.ts'
import { NETWORK_TIME, readClientFile, unpackNetwork } from './networks.ts'

const DAY_MS = 24 * 60 * 60_000
const NAME = '1.6.5-three-roots'

describe('an adopted network of several roots, on trial, that begins a cluster', () => {
  const folder = mkdtempSync(join(tmpdir(), 'adopted-cluster-'))
  const directories = { first: join(folder, 'first'), second: join(folder, 'second') }
  const common = { env: {}, clock: new TestClock(NETWORK_TIME), osUser: 'operator' }
  let server: TestPostgres
  let nodes: TestController[]

  beforeAll(async () => {
    server = await TestPostgres.start()
    const place = { 'cluster.database': await server.createDatabase(), 'cluster.tls': false }
    const { config } = unpackNetwork(NAME, join(folder, 'network'))
    const source = { ...common, directory: directories.first, configuration: config, trialMs: 14 * DAY_MS }
    ;(await adoptNetwork(source)).complete()
    const first = { ...place, 'cluster.name': 'one' }
    const { clusterKeyFile } = await beginCluster({ ...common, directory: directories.first, settings: first })
    const second = { ...place, 'cluster.name': 'two', advertise: ['localhost:1280'] }
    await joinCluster({ ...common, directory: directories.second, settings: second, clusterKeyFile })
    nodes = []
    for (const directory of Object.values(directories))
      nodes.push(await testController({ directory, clock: new TestClock(NETWORK_TIME) }))
  }, 120_000)
  afterAll(async () => {
    for (const node of nodes ?? []) await node.close()
    await server?.stop()
    rmSync(folder, { recursive: true })
  })

  it.each([0, 1])('signs identities in by what they have, at controller %i', async (at) => {
    const node = nodes[at] as TestController
    const body = { username: 'bobby', password: 'Secr3t!pass' }
    expect((await node.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body })).status).toBe(200)
    const { url } = await node.listen()
    const pair = { cert: readClientFile(NAME, 'client.crt'), key: readClientFile(NAME, 'client.key') }
    const request = { method: 'POST', path: `${CLIENT}/authenticate?method=cert`, body: {}, ...pair } as const
    expect((await callOverTls(url, readClientFile(NAME, 'cas.pem'), request)).status).toBe(200)
  })

  it('has the same authorities, and the same end of the trial, at each', () => {
    const [first, second] = nodes as [TestController, TestController]
    const list = ({ controller }: TestController) =>
      controller.authority.trust.anchors.map((anchor: X509Certificate) => anchor.fingerprint256).sort()
    expect(list(second)).toEqual(list(first))
    expect(list(first).length).toBeGreaterThanOrEqual(5)
    expect(second.controller.config['adoption.trialEnds']).toBe(NETWORK_TIME + 14 * DAY_MS)
  })
})
