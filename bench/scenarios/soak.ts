// Whether memory grows under a mixed load that lasts: reads, changes, sign-ins, and records that come and go.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { CLIENT, MANAGEMENT } from '../controller/api.ts'
import type { MemoryFigures } from '../controller/inside.ts'
import type { Generator, PreparedRun } from '../generator/generator.ts'
import type { Outcome } from '../generator/plan.ts'
import { requestBytes } from '../generator/requests.ts'
import type { Measurement } from '../measurement.ts'
import { asClients, enrolledClients, signIn } from '../model/clients.ts'
import type { Network } from '../model/network.ts'
import { shuffled } from '../model/random.ts'
import { identityName } from '../model/records.ts'
import type { Fact } from '../report/results.ts'
import { median } from '../report/statistics.ts'
import { roleChanges } from '../workloads/administration.ts'
import { ownServices, poll } from '../workloads/clients.ts'

export const MINUTE_MS = 60_000
const BYTES_A_MEGABYTE = 1_000_000

// Memory is read so often, but not in a shorter interval, because each reading collects garbage twice.
const SAMPLES = { least: 12, most: 48, minIntervalMs: 100 } as const
// The first quarter fills caches, and does not count.
const WARM_UP = 0.25
// The whole course is shown in so many parts; in the default duration, each lasts ten minutes.
const PARTS = 6

// A load that leaves both cores nearly idle: what matters is how long it lasts.
const CALLERS = { inFlight: 8, pauseMilliseconds: 40 } as const
const SIGN_INS = { inFlight: 1, pauseMilliseconds: 200 } as const
const REST_BETWEEN_RECORDS_MS = 250

// These clients only sign in. Each has as many API sessions as it may have after a few seconds, and loses the oldest ones.
export const SIGNING_IN = 10
const SESSIONS_PER_IDENTITY = 5
const NAMED_IDENTITIES = 500

/** @param minutes how long the load lasts */
export function soakMeasurement(minutes: number): Measurement {
  return {
    section: 'soak',
    name: `${minutes} minutes of mixed load`,
    needs: [],
    isOnce: true,
    async measure(bench) {
      const { network } = await bench.loaded()
      const requests = await mixedRequests(network)
      const clients = (await enrolledClients(network)).slice(-SIGNING_IN)
      const credentials = clients.map(({ credential }) => credential)
      const signIns = { requests: credentials.map(() => requestBytes(signIn)), credentials, connectsEachTime: true }
      const { controller } = network
      await controller.stop()
      await controller.startObserved({ CONTROLLER_LIMITS_SESSIONS_PER_IDENTITY: String(SESSIONS_PER_IDENTITY) })
      const prepare = (
        generator: Generator,
        traffic: typeof signIns | { requests: Buffer[] },
        options: typeof CALLERS | typeof SIGN_INS,
      ) => generator.prepareLoop(controller.target, traffic, options)
      const runs = [
        await prepare(bench.generator, { requests }, CALLERS),
        await prepare(bench.probe, signIns, SIGN_INS),
      ]
      const { outcomes, samples } = await soak(bench, network, runs, minutes * MINUTE_MS)
      return [...trafficFacts(outcomes), ...memoryFacts(samples)].map((fact) => ({
        ...fact,
        name: `${minutes} minutes of mixed load: ${fact.name}`,
      }))
    },
  }
}

/** Requests of clients and administrators, in a proportion that many networks have. */
export async function mixedRequests(network: Network): Promise<Buffer[]> {
  const { api } = network
  const clients = (await enrolledClients(network)).slice(0, -SIGNING_IN)
  const report = { id: 'soak', typeId: 'OS', type: 'Linux', version: '6.1.0' }
  const identities = (await network.identities()).slice(0, NAMED_IDENTITIES)
  const changes = (await roleChanges(network)).requests
  const moved = [
    ...changes.slice(0, NAMED_IDENTITIES),
    ...changes.slice(changes.length / 2, changes.length / 2 + NAMED_IDENTITIES),
  ]
  const list = (filter: string) => api.managementRequest('GET', `/identities?${new URLSearchParams({ filter })}`)
  return shuffled([
    ...asClients(clients, poll),
    ...asClients(clients, { method: 'GET', path: `${CLIENT}/current-identity` }),
    ...asClients(clients, ownServices),
    ...asClients(clients, { method: 'POST', path: `${CLIENT}/posture-response`, body: report }),
    ...identities.map(({ id }) => api.managementRequest('GET', `/identities/${id}`)),
    ...identities.map(({ at }) => list(`name="${identityName(at)}"`)),
    ...identities.slice(0, 50).map(({ at }) => list(`name contains "${at}" sort by name limit 500`)),
    ...moved,
  ])
}

/** Lets the load run, and reads the memory meanwhile. */
async function soak(
  bench: Bench,
  network: Network,
  runs: readonly PreparedRun[],
  milliseconds: number,
): Promise<{ outcomes: readonly Outcome[]; samples: readonly MemoryFigures[] }> {
  const going = Promise.all(runs.map((run) => run.go(milliseconds)))
  let isOver = false
  const coming = comeAndGo(network, () => isOver)
  const samples: MemoryFigures[] = []
  const { least, most, minIntervalMs } = SAMPLES
  const count = Math.min(most, Math.max(least, Math.floor(milliseconds / minIntervalMs)))
  try {
    for (let at = 0; at < count; at++) {
      bench.progress.share('soaking', at, count)
      await wait(milliseconds / count)
      samples.push(await network.controller.readMemory())
    }
  } finally {
    isOver = true
    for (const run of runs) run.stop()
    bench.progress.clear()
  }
  const outcomes = await going
  await coming
  return { outcomes, samples }
}

/** Creates a service, an identity and a policy for them, and deletes them, again and again; each request by a connection of its own. */
async function comeAndGo({ api }: Network, isOver: () => boolean): Promise<void> {
  for (let at = 0; !isOver(); at++) {
    const name = `soak-${at}`
    const create = async (path: string, body: object) =>
      (await api.asAdministrator({ method: 'POST', path: MANAGEMENT + path, body })) as { id: string }
    const service = await create('/services', { name, encryptionRequired: false, roleAttributes: [name] })
    const identity = await create('/identities', { name, type: 'User', isAdmin: false, enrollment: { ott: true } })
    const sides = { identityRoles: [`@${identity.id}`], serviceRoles: [`@${service.id}`] }
    const policy = await create('/service-policies', { name, type: 'Dial', semantic: 'AnyOf', ...sides })
    await wait(REST_BETWEEN_RECORDS_MS)
    for (const path of [`service-policies/${policy.id}`, `identities/${identity.id}`, `services/${service.id}`])
      await api.asAdministrator({ method: 'DELETE', path: `${MANAGEMENT}/${path}` })
  }
}

function trafficFacts(outcomes: readonly Outcome[]): Fact[] {
  for (const {
    failures: [failure],
  } of outcomes) {
    if (failure) throw new Error(`${failure.times} requests failed: ${failure.what}`)
  }
  const [requests, signIns] = outcomes.map(({ completed, seconds }) => completed / seconds)
  return [fact('requests', requests ?? 0, '/s'), fact('sign-ins', signIns ?? 0, '/s')]
}

/** The course of the memory, and its growth from the first to the last third of what counts. All by medians. */
export function memoryFacts(samples: readonly MemoryFigures[]): Fact[] {
  const counting = samples.slice(Math.ceil(samples.length * WARM_UP))
  const third = Math.ceil(counting.length / 3)
  const kinds = [
    { what: 'heap', read: ({ heapBytes }: MemoryFigures) => heapBytes, atMost: bounds.heapGrowthPercent },
    {
      what: 'resident memory',
      read: ({ residentBytes }: MemoryFigures) => residentBytes,
      atMost: bounds.residentGrowthPercent,
    },
  ]
  return kinds.flatMap(({ what, read, atMost }) => {
    const first = median(counting.slice(0, third).map(read))
    const last = median(counting.slice(-third).map(read))
    const course = Array.from({ length: PARTS }, (_, at) => {
      const part = samples.slice((at * samples.length) / PARTS, ((at + 1) * samples.length) / PARTS)
      return fact(`${what}, part ${at + 1} of ${PARTS}`, median(part.map(read)) / BYTES_A_MEGABYTE, 'MB')
    })
    return [
      ...course,
      fact(`${what} in the first third`, first / BYTES_A_MEGABYTE, 'MB'),
      fact(`${what} in the last third`, last / BYTES_A_MEGABYTE, 'MB'),
      fact(`${what}: growth`, 100 * (last / first - 1), '%', atMost),
    ]
  })
}

export function fact(name: string, value: number, unit: Fact['unit'], atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'soak', name, value, unit, atMost }
}
