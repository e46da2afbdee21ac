// Many routers: their memory, all API sessions for one of them, sign-ins that all of them are told about, paths and dials.
import { Paths } from '../../src/network/links/paths.ts'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { requestBytes } from '../generator/requests.ts'
import type { Measurement } from '../measurement.ts'
import { enrolledClients, openSessions, signIn } from '../model/clients.ts'
import { connectableRouters, makeDialable } from '../model/connected-routers.ts'
import type { Network } from '../model/network.ts'
import { seeded } from '../model/random.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact, Unit } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import { Swarm } from '../routers/swarm.ts'
import type { RouterIdentity } from '../routers/swarm-messages.ts'
import { management } from '../workloads/workload.ts'
import { pollFacts, probed } from './probe.ts'

const SIGN_INS_IN_FLIGHT = 8
const DIALS_IN_FLIGHT = 32
const BYTES_A_KILOBYTE = 1_000

const count = (number: number) => number.toLocaleString('en')

/** The measurements with connected routers are one, because each part builds on the one before. */
export function routerMeasurements(model: Model): readonly Measurement[] {
  const { connectedRouters, apiSessions } = model
  return [
    {
      section: 'routers',
      name: `${count(connectedRouters)} routers and ${count(apiSessions)} API sessions`,
      needs: [management('POST', '/edge-routers')],
      isOnce: true,
      measure: measureConnected,
    },
    { section: 'routers', name: 'paths', needs: [], measure: async () => measurePaths() },
  ]
}

async function measureConnected(bench: Bench): Promise<Fact[]> {
  const { network } = await bench.loadedForRouters()
  const { connectedRouters, apiSessions } = network.model
  const name = `${count(connectedRouters)} routers and ${count(apiSessions)} API sessions`
  await openSessions(network, apiSessions)
  const identities = await connectableRouters(network)
  const swarm = new Swarm()
  try {
    const facts = [
      ...(await measureConnecting(network, swarm, identities)),
      ...(await measureSynchronization(bench, network, swarm)),
      ...(await measureAnnouncements(bench, network, swarm)),
      ...(await measureDials(bench, network, swarm, identities[1] as RouterIdentity)),
    ]
    return facts.map((one) => ({ ...one, name: `${name}: ${one.name}` }))
  } finally {
    swarm.close()
  }
}

async function measureConnecting(network: Network, swarm: Swarm, routers: readonly RouterIdentity[]): Promise<Fact[]> {
  const { controller } = network
  const residentBefore = controller.residentBytes
  const begun = performance.now()
  await swarm.run({ kind: 'connect', target: controller.target, routers }, 'connected')
  const seconds = (performance.now() - begun) / 1000
  const bytes = (controller.residentBytes - residentBefore) / routers.length
  return [
    fact('all are connected after', seconds, 's'),
    fact('memory of a router', bytes / BYTES_A_KILOBYTE, 'KB', bounds.routerKilobytes),
  ]
}

async function measureSynchronization(bench: Bench, network: Network, swarm: Swarm): Promise<Fact[]> {
  const together = await probed(bench, network, () => swarm.run({ kind: 'synchronize', at: 0 }, 'synchronized'))
  const name = 'all API sessions to one router'
  return [
    fact(name, together.result.milliseconds, 'ms', bounds.synchronizationMilliseconds),
    ...pollFacts(together, name).map((one) => ({ ...one, section: 'routers' as const })),
  ]
}

/** The CPU time of announcements is what sign-ins cost more while routers are connected: encoding, TLS and the sockets. */
async function measureAnnouncements(bench: Bench, network: Network, swarm: Swarm): Promise<Fact[]> {
  const countAnnouncements = async () => (await swarm.run({ kind: 'countAnnouncements' }, 'announcements')).count
  const credentials = (await enrolledClients(network)).map(({ credential }) => credential)
  const traffic = { requests: credentials.map(() => requestBytes(signIn)), credentials, connectsEachTime: true }
  const options = { inFlight: SIGN_INS_IN_FLIGHT }
  const run = await bench.generator.prepareLoop(network.controller.target, traffic, options)
  const countBefore = await countAnnouncements()
  const cpuBefore = network.controller.cpuMicroseconds
  const { completed, seconds, latencies } = await run.go(bench.milliseconds)
  const cpu = network.controller.cpuMicroseconds - cpuBefore
  const announcements = (await countAnnouncements()) - countBefore
  return [
    fact('sign-ins that all are told about', completed / seconds, '/s'),
    fact('sign-ins that all are told about: p99', percentile(latencies, 0.99), 'ms'),
    fact('sign-ins that all are told about: messages to routers', announcements / seconds, '/s'),
    fact('sign-ins that all are told about: CPU for each message, sign-in included', cpu / announcements, 'µs'),
  ]
}

async function measureDials(bench: Bench, network: Network, swarm: Swarm, router: RouterIdentity): Promise<Fact[]> {
  const tokens = await makeDialable(network, router.id)
  const command = { kind: 'dial', at: 1, tokens, inFlight: DIALS_IN_FLIGHT, milliseconds: bench.milliseconds } as const
  const cpuBefore = network.controller.cpuMicroseconds
  const { completed, refused, seconds, latencies } = await swarm.run(command, 'dialed')
  const cpu = network.controller.cpuMicroseconds - cpuBefore
  if (refused > 0) throw new Error(`${refused} of ${completed} dials were refused`)
  return [
    fact('dials over one router', completed / seconds, '/s'),
    fact('dials over one router: p99', percentile(latencies, 0.99), 'ms'),
    fact('CPU of a dial', cpu / completed, 'µs', bounds.dialMicroseconds),
  ]
}

// ---- paths -------------------------------------------------------------------------------------------------------------

const PATH_ROUTERS = 500
const PATH_LINKS = 2_000
const MAX_LINK_COST = 60
const LATENCY_REPORTS = 2_000

/** In this process: paths need no network. */
function measurePaths(): Fact[] {
  const paths = new Paths()
  const random = seeded(1)
  const anyRouter = () => `router-${Math.floor(random() * PATH_ROUTERS)}`
  const anyCost = () => 1 + Math.floor(random() * MAX_LINK_COST)
  for (let at = 0; at < PATH_ROUTERS; at++) paths.connectRouter(`router-${at}`)
  const links = Array.from({ length: PATH_LINKS }, (_, at) => {
    const [sourceId, destinationId] = [`router-${at % PATH_ROUTERS}`, anyRouter()]
    return { id: `link-${at}`, sourceId, destinationId }
  })
  const discardAll = (cost: number) => paths.setRouterCost('router-0', { cost, noTraversal: false })
  const findFromAll = () => {
    for (let at = 0; at < PATH_ROUTERS; at++) paths.findPath(`router-${at}`, anyRouter())
  }
  for (const link of links) paths.setLink(link, anyCost())
  // The runtime compiles the code first.
  findFromAll()
  discardAll(20)
  const uncached = cpuMicrosecondsOf(findFromAll) / PATH_ROUTERS
  const cached = cpuMicrosecondsOf(() => {
    for (let turn = 0; turn < 100; turn++) findFromAll()
  })
  const reports = cpuMicrosecondsOf(() => {
    for (let at = 0; at < LATENCY_REPORTS; at++) paths.setLink(links[at % PATH_LINKS] as (typeof links)[0], anyCost())
  })
  const name = `${count(PATH_ROUTERS)} routers and ${count(PATH_LINKS)} links`
  return [
    fact(`paths over ${name}, the first from a router: CPU`, uncached, 'µs', bounds.pathMicroseconds),
    fact(`paths over ${name}, another one: CPU`, cached / (100 * PATH_ROUTERS), 'µs'),
    fact(`paths over ${name}: CPU of a latency report`, reports / LATENCY_REPORTS, 'µs'),
  ]
}

function cpuMicrosecondsOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

function fact(name: string, value: number, unit: Unit, atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'routers', name, value, unit, atMost }
}
