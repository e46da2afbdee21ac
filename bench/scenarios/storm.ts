// A storm: all clients lose their connections and come back at the same moment, routers being connected and an administrator at work.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds, budgets, HANDSHAKE_MICROSECONDS } from '../budgets.ts'
import { CLIENT, forEach, MANAGEMENT } from '../controller/api.ts'
import { maxDescriptors } from '../controller/process-figures.ts'
import type { Outcome, StormMember } from '../generator/plan.ts'
import { type RequestParts, requestBytes } from '../generator/requests.ts'
import { SERVICE, TOKEN } from '../generator/storm.ts'
import type { Measurement } from '../measurement.ts'
import { invitations, signIn } from '../model/clients.ts'
import { connectableRouters } from '../model/connected-routers.ts'
import type { Network } from '../model/network.ts'
import { identityBody } from '../model/records.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact, Unit } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import { Swarm } from '../routers/swarm.ts'
import { roleChanges } from '../workloads/administration.ts'
import { ownServices, poll } from '../workloads/clients.ts'
import { client, management } from '../workloads/workload.ts'

const ADDRESSES = 20
const PASSWORD = 'correct horse battery'
const ADMINISTRATION = { inFlight: 1, pauseMilliseconds: 50, warmUpMilliseconds: 500 } as const
const MEMORY_INTERVAL_MS = 100
// Of the duration of a measurement: enough for collections.
const REST_TIMES = 2.5
const BYTES_A_MEGABYTE = 1_000_000
const ENDING_IN_FLIGHT = 8
// For the handshakes of the bare server.
const MAX_BARE = 500
// Of both processes, besides the connections of the devices and routers: files, listeners, other connections.
const OTHER_DESCRIPTORS = 500

const count = (number: number) => number.toLocaleString('en')
const addressOf = (at: number) => `127.0.1.${1 + (at % ADDRESSES)}`

/** As an SDK asks with the session that it was given. */
const withToken = (parts: RequestParts) =>
  requestBytes({ ...parts, headers: { ...parts.headers, 'zt-session': TOKEN } }).toString()
const STEPS = [
  withToken(ownServices),
  withToken({ method: 'GET', path: `${CLIENT}/current-identity/edge-routers` }),
  withToken({ method: 'POST', path: `${CLIENT}/sessions`, body: { serviceId: SERVICE, type: 'Dial' } }),
]
// Edge routers have no budget of their own, and a new session has that of one that exists.
const { signInByCertificate, ownServices: services, sessionAgain, serviceUpdates, identityRoles } = budgets
const STEPS_MICROSECONDS = [signInByCertificate, services, services, sessionAgain].reduce(
  (sum, { cpuMicroseconds }) => sum + cpuMicroseconds,
  -HANDSHAKE_MICROSECONDS,
)

interface Crowd {
  readonly requests: readonly Buffer[]
  readonly members: readonly StormMember[]
  readonly isSignIn: boolean
  readonly resumes?: boolean
}

export function stormMeasurements({ storm, connectedRouters }: Model): readonly Measurement[] {
  const { people, enrolling } = storm
  const devices = Math.max(0, Math.min(storm.devices, maxDescriptors() - connectedRouters - OTHER_DESCRIPTORS))
  const needs = [client('POST', '/authenticate'), client('GET', '/services'), client('POST', '/sessions')]
  return [
    {
      section: 'storm',
      name: `${count(devices)} devices`,
      needs,
      measure: (bench) => measureDevices(bench, devices),
    },
    {
      section: 'storm',
      name: `${count(people)} people`,
      needs: [...needs, management('POST', '/authenticators')],
      measure: async (bench) => {
        const { network } = await bench.loadedForRouters()
        return (await weather(bench, network, `${count(people)} people`, await peopleOf(network))).facts
      },
    },
    {
      section: 'storm',
      name: `${count(enrolling)} enrollments`,
      needs: [client('POST', '/enroll')],
      measure: async (bench) => {
        const { network } = await bench.loadedForRouters()
        const invited = await invitations(network, enrolling)
        const requests = invited.map(({ request }) => requestBytes(request))
        const members = requests.map((_, at) => ({ request: at, address: addressOf(at) }))
        return (
          await weather(bench, network, `${count(enrolling)} enrollments`, { requests, members, isSignIn: false })
        ).facts
      },
    },
  ]
}

async function measureDevices(bench: Bench, devices: number): Promise<Fact[]> {
  const name = `${count(devices)} devices`
  const { network } = await bench.loadedForRouters()
  const members = await devicesOf(network, devices)
  const requests = [requestBytes(signIn)]
  const bare = await measureBareHandshakes(bench, members)
  const full = await weather(bench, network, name, { requests, members, isSignIn: true })
  const resumed = await weather(bench, network, `${name} with tickets`, {
    ...{ requests, members, isSignIn: true },
    resumes: true,
  })
  // The budgets are times of another machine: the same handshake tells how much slower this one is.
  const parts = bare + full.requestMicroseconds * (bare / HANDSHAKE_MICROSECONDS)
  return [
    fact(`${name}: bare handshake`, bare, 'µs'),
    fact(`${name}: bare handshake and budgets`, parts, 'µs'),
    ...full.facts,
    fact(`${name}: CPU over its parts`, full.cpuMicroseconds / parts, '×', bounds.stormTimesParts),
    fact(
      `${name}: CPU over its parts, budgets unscaled`,
      full.cpuMicroseconds / (bare + full.requestMicroseconds),
      '×',
    ),
    ...resumed.facts,
    fact(
      `${name} with tickets: CPU over without`,
      resumed.cpuMicroseconds / full.cpuMicroseconds,
      '×',
      bounds.stormResumedTimesFull,
    ),
  ]
}

/** Enrolls the devices, each with a certificate of its own. */
function devicesOf(network: Network, devices: number): Promise<readonly StormMember[]> {
  return network.once('devices of the storm', async () =>
    forEach(await invitations(network, devices), async ({ request, key }, at) => {
      const { cert } = (await network.api.data(request)) as { cert: string }
      return { credential: { cert, key }, request: 0, address: addressOf(at) }
    }),
  )
}

/** Identities with a password each, and their sign-ins. */
async function peopleOf(network: Network): Promise<Crowd> {
  const { api, model } = network
  const requests = await network.once('people of the storm', () =>
    forEach(Array.from({ length: model.storm.people }), async (_, at) => {
      const username = `person-${at}`
      const create = {
        method: 'POST',
        path: `${MANAGEMENT}/identities`,
        body: identityBody(username, at, model),
      } as const
      const { id: identityId } = (await api.asAdministrator(create)) as { id: string }
      const body = { method: 'updb', identityId, username, password: PASSWORD }
      await api.asAdministrator({ method: 'POST', path: `${MANAGEMENT}/authenticators`, body })
      const path = `${CLIENT}/authenticate?method=password`
      return requestBytes({ method: 'POST', path, body: { username, password: PASSWORD } })
    }),
  )
  return { requests, members: requests.map((_, at) => ({ request: at, address: addressOf(at) })), isSignIn: true }
}

/** The CPU time of a bare server for a connection of a client with its certificate, and a request. */
async function measureBareHandshakes(bench: Bench, members: readonly StormMember[]): Promise<number> {
  const floor = await bench.floor()
  await floor.respondWith({ bodyBytes: 500, checksPassword: false })
  const crowd = members
    .slice(0, MAX_BARE)
    .map(({ credential }) => ({ ...(credential && { credential }), requests: [0] }))
  const run = await floor.generator.prepareCrowd(floor.target, [requestBytes(signIn)], crowd)
  const before = floor.cpuMicroseconds
  await run.go()
  return (floor.cpuMicroseconds - before) / crowd.length
}

interface Weathered {
  readonly facts: Fact[]
  /** Of the controller, for each client. */
  readonly cpuMicroseconds: number
  /** The budgets of the requests of each client without its handshake, and its share of those of the administrator. */
  readonly requestMicroseconds: number
}

/** Lets the crowd come, and measures what it costs, how long each waits, and what the administrator notices. */
async function weather(bench: Bench, network: Network, name: string, crowd: Crowd): Promise<Weathered> {
  const { controller } = network
  const { requests, members, isSignIn, resumes = false } = crowd
  const swarm = new Swarm()
  const begin = new Date().toISOString()
  try {
    const routers = await connectableRouters(network)
    await swarm.run({ kind: 'connect', target: controller.target, routers }, 'connected')
    const storm = { members, steps: isSignIn ? STEPS : [], poll: withToken(poll), resumes }
    const run = await bench.generator.prepareStorm(controller.target, requests, storm)
    const administrator = await bench.probe.prepareLoop(controller.target, await roleChanges(network), ADMINISTRATION)
    const memory = watchMemory(() => controller.residentBytes)
    const working = administrator.go()
    const cpuBefore = controller.cpuMicroseconds
    const outcome = await run.go().finally(() => administrator.stop())
    const cpuMicroseconds = (controller.cpuMicroseconds - cpuBefore) / members.length
    const work = await working
    await wait(bench.milliseconds * REST_TIMES)
    const others =
      (outcome.storm?.polls.length ?? 0) * serviceUpdates.cpuMicroseconds +
      work.completed * identityRoles.cpuMicroseconds
    const requestMicroseconds = STEPS_MICROSECONDS + others / members.length
    return { cpuMicroseconds, requestMicroseconds, facts: describe(name, outcome, work, cpuMicroseconds, memory()) }
  } finally {
    swarm.close()
    await endSessions(network, begin)
  }
}

/** Ends the API sessions of a storm, so that the next one finds no more of them than the first did. */
async function endSessions({ api, generator }: Network, begin: string): Promise<void> {
  const ofStorm = `createdAt >= datetime(${begin}) sort by id`
  const sessions = await api.records<{ id: string }>('/api-sessions', ofStorm, Number.POSITIVE_INFINITY)
  const requests = sessions.map(({ id }) => api.managementRequest('DELETE', `/api-sessions/${id}`))
  if (requests.length > 0) await generator.sendAll(api.target, requests, { inFlight: ENDING_IN_FLIGHT })
}

interface Memory {
  readonly before: number
  readonly most: number
  readonly after: number
}

/** Watches the resident memory until it is asked for it. */
function watchMemory(read: () => number): () => Memory {
  const before = read()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, read())
  }, MEMORY_INTERVAL_MS)
  return () => {
    clearInterval(timer)
    return { before, most, after: read() }
  }
}

function describe(name: string, outcome: Outcome, work: Outcome, cpuMicroseconds: number, memory: Memory): Fact[] {
  const { seconds, latencies, storm, failures } = outcome
  const [failure] = failures
  if (failure) throw new Error(`${failure.times} requests failed: ${failure.what}`)
  if (!storm) throw new Error('the load was no storm')
  const middle = percentile(latencies, 0.5)
  const last = percentile(latencies, 1)
  const polls =
    storm.polls.length === 0
      ? []
      : [fact('polls of those who are back, p99', percentile(storm.polls, 0.99), 'ms', bounds.stormPollMilliseconds)]
  const facts = [
    fact('all are back after', seconds, 's'),
    fact('median', middle / 1000, 's'),
    fact('last over median', last / middle, '×', bounds.stormLastTimesMedian),
    fact('CPU for each', cpuMicroseconds, 'µs'),
    fact('administrator, p99', percentile(work.latencies, 0.99), 'ms', bounds.stormAdministratorMilliseconds),
    ...polls,
    fact('told to come later, for each', storm.refusedCount / latencies.length, '×'),
    fact('told to come later, at most after', storm.maxRetryAfterSeconds, 's'),
    fact('failed connections, for each', storm.failedConnections / latencies.length, '×'),
    fact('memory before', memory.before / BYTES_A_MEGABYTE, 'MB'),
    fact('memory, most', memory.most / BYTES_A_MEGABYTE, 'MB'),
    fact('memory afterwards', memory.after / BYTES_A_MEGABYTE, 'MB'),
  ]
  return facts.map((one) => ({ ...one, name: `${name}: ${one.name}` }))
}

function fact(name: string, value: number, unit: Unit, atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'storm', name, value, unit, atMost }
}
