// Bursts of load, and their effect on other clients.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { MANAGEMENT } from '../controller/api.ts'
import type { Outcome } from '../generator/plan.ts'
import { requestBytes } from '../generator/requests.ts'
import type { Measurement } from '../measurement.ts'
import { asClients, enrolledClients, invitations, signIn } from '../model/clients.ts'
import type { Network } from '../model/network.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import { creations as identityCreations, roleChanges } from '../workloads/administration.ts'
import { ownServices } from '../workloads/clients.ts'
import { client, management } from '../workloads/workload.ts'
import { milliseconds, pollFacts, probed } from './probe.ts'

const WRITERS = 8
const JOINS = 10
const REST_BETWEEN_JOINS_MS = 20

const count = (number: number) => number.toLocaleString('en')

/** The scenarios of a model, each named with its numbers. */
export function togetherMeasurements(model: Model): readonly Measurement[] {
  return [joinEverything(model), writeStorm, enrollAtOnce(model), reconnect(model)]
}

/** One policy joins every identity with every service, several times over. */
function joinEverything({ identities, services }: Model): Measurement {
  const name = `POST service-policies, ${count(identities)} identities × ${count(services)} services`
  return {
    section: 'together',
    name,
    needs: [management('POST', '/service-policies'), management('DELETE', '/service-policies/{id}')],
    async measure(bench) {
      const { network } = await bench.loaded()
      const together = await probed(bench, network, () => joinAndPart(network))
      const { creations, deletions } = together.result
      return [
        milliseconds(`${name}: slowest of ${JOINS}`, Math.max(...creations), bounds.joinEverythingMilliseconds),
        milliseconds(`${name}: slowest deletion`, Math.max(...deletions)),
        ...pollFacts(together, name),
      ]
    },
  }
}

/** Milliseconds. */
interface JoinLatencies {
  readonly creations: readonly number[]
  readonly deletions: readonly number[]
}

async function joinAndPart({ api }: Network): Promise<JoinLatencies> {
  const roles = { identityRoles: ['#all'], serviceRoles: ['#all'] }
  const body = { name: 'everyone-everything', type: 'Dial', semantic: 'AnyOf', ...roles }
  const [creations, deletions]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < JOINS; turn++) {
    const begun = performance.now()
    const { id } = (await api.asAdministrator({
      method: 'POST',
      path: `${MANAGEMENT}/service-policies`,
      body,
    })) as { id: string }
    creations.push(performance.now() - begun)
    await wait(REST_BETWEEN_JOINS_MS)
    const deletedAt = performance.now()
    await api.asAdministrator({ method: 'DELETE', path: `${MANAGEMENT}/service-policies/${id}` })
    deletions.push(performance.now() - deletedAt)
  }
  return { creations, deletions }
}

/** As many changes as the controller takes. */
const writeStorm: Measurement = {
  section: 'together',
  name: 'storm of writes',
  needs: [management('PATCH', '/identities/{id}'), management('POST', '/identities')],
  async measure(bench) {
    const { network } = await bench.loaded()
    const changes = await roleChanges(network)
    const { requests: made } = await identityCreations(network)
    const requests = changes.requests.flatMap((change, at) => [change, made[at % made.length] as Buffer])
    const { target } = network.controller
    const storm = await bench.generator.prepareLoop(target, { requests }, { inFlight: WRITERS })
    const together = await probed(bench, network, () => storm.go(bench.milliseconds))
    assertNoneRefused(together.result)
    return [
      perSecond('storm of writes: completed', together.result.completed / together.result.seconds),
      milliseconds('storm of writes: p99', percentile(together.result.latencies, 0.99)),
      ...pollFacts(together, 'storm of writes'),
    ]
  },
}

/** Many devices enroll at the same moment, each over a connection of its own. */
function enrollAtOnce({ enrollingAtOnce }: Model): Measurement {
  const name = `${count(enrollingAtOnce)} enrollments at once`
  return {
    section: 'together',
    name,
    needs: [client('POST', '/enroll')],
    async measure(bench) {
      const { network } = await bench.loaded()
      const invited = await invitations(network, enrollingAtOnce)
      const requests = invited.map(({ request }) => requestBytes(request))
      const members = requests.map((_, at) => ({ requests: [at] }))
      const crowd = await bench.generator.prepareCrowd(network.controller.target, requests, members)
      const together = await probed(bench, network, () => crowd.go())
      return [...crowdFacts(name, together.result), ...pollFacts(together, name)]
    },
  }
}

/** The controller is restarted, and every client comes back at once: a new connection, a sign-in, its services. */
function reconnect({ clients }: Model): Measurement {
  const name = `${count(clients)} clients reconnect after a restart`
  return {
    section: 'together',
    name,
    needs: [client('POST', '/authenticate'), client('GET', '/services')],
    async measure(bench) {
      const { network } = await bench.loaded()
      const outcome = await restartUnder(bench, network)
      return crowdFacts(name, outcome)
    },
  }
}

async function restartUnder({ generator }: Bench, network: Network): Promise<Outcome> {
  const clients = await enrolledClients(network)
  // The services are asked for with the session of before the restart, which must still count.
  const requests = [requestBytes(signIn), ...asClients(clients, ownServices)]
  const members = clients.map(({ credential }, at) => ({ credential, requests: [0, at + 1] }))
  const { controller } = network
  const crowd = await generator.prepareCrowd(controller.target, requests, members)
  await controller.stop()
  controller.launch()
  const end = controller.unexpectedEnd()
  // It ends later, after the last request.
  end.catch(() => {})
  const going = crowd.go()
  try {
    return await Promise.race([going, end])
  } catch (error) {
    crowd.stop()
    await going
    throw error
  }
}

function crowdFacts(name: string, outcome: Outcome): Fact[] {
  assertNoneRefused(outcome)
  const { seconds, latencies } = outcome
  return [
    { ...milliseconds(`${name}: all are in after`, seconds), unit: 's' },
    milliseconds(`${name}: p50`, percentile(latencies, 0.5)),
    milliseconds(`${name}: p99`, percentile(latencies, 0.99)),
  ]
}

function perSecond(name: string, value: number): Fact {
  return { kind: 'fact', section: 'together', name, value, unit: '/s', atMost: null }
}

function assertNoneRefused({ failures: [failure] }: Outcome): void {
  if (failure) throw new Error(`${failure.times} requests failed: ${failure.what}`)
}
