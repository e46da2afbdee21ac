// The requests of administrators and their scripts to the management API.
import { bounds, budgets } from '../budgets.ts'
import type { Traffic } from '../generator/generator.ts'
import { COUNTER } from '../generator/requests.ts'
import type { Network } from '../model/network.ts'
import { shuffled } from '../model/random.ts'
import { identityBody, identityName, team } from '../model/records.ts'
import { management, type Workload } from './workload.ts'

const listIdentities = management('GET', '/identities')
const listed = (filter: string) => `/identities?${new URLSearchParams({ filter })}`

/** A read for each identity of a network. @param most of so many at most, if not of the usual sample */
const forEachIdentity =
  (path: (identity: { id: string; at: number }, network: Network) => string, most?: number) =>
  async (network: Network): Promise<Traffic> => ({
    requests: (await network.identities(most)).map((identity) =>
      network.api.managementRequest('GET', path(identity, network)),
    ),
  })

const always =
  (path: string) =>
  async ({ api }: Network): Promise<Traffic> => ({ requests: [api.managementRequest('GET', path)] })

export const readingWorkloads: readonly Workload[] = [
  {
    name: 'GET identities/{id}',
    budget: budgets.identityById,
    needs: [management('GET', '/identities/{id}')],
    inFlight: 8,
    isFlat: true,
    traffic: forEachIdentity(({ id }) => `/identities/${id}`),
  },
  {
    name: 'GET identities/{id}, spread over all',
    needs: [management('GET', '/identities/{id}')],
    inFlight: 8,
    isFlat: true,
    atMostGrowth: bounds.growthOfSpreadReads,
    traffic: forEachIdentity(({ id }) => `/identities/${id}`, Number.POSITIVE_INFINITY),
  },
  {
    name: 'GET identities?limit=10',
    budget: budgets.identitiesPage,
    needs: [listIdentities],
    inFlight: 8,
    isFlat: true,
    traffic: always('/identities?limit=10'),
  },
  {
    name: 'GET identities?filter=name="…"',
    budget: budgets.identityByName,
    needs: [listIdentities],
    inFlight: 8,
    isFlat: true,
    traffic: forEachIdentity(({ at }) => listed(`name="${identityName(at)}"`)),
  },
  {
    name: 'GET identities by role attribute, 10 by name',
    needs: [listIdentities],
    inFlight: 8,
    isFlat: true,
    traffic: forEachIdentity(({ at }, { model }) =>
      listed(`anyOf(roleAttributes) = "${team(at, model)}" sort by name limit 10`),
    ),
  },
  {
    name: 'GET identities, 10 newest',
    needs: [listIdentities],
    inFlight: 8,
    isFlat: true,
    traffic: always(listed('true sort by createdAt desc limit 10')),
  },
  {
    name: 'GET identities, 500 by name contains',
    budget: budgets.identities500,
    needs: [listIdentities],
    inFlight: 4,
    isFlat: true,
    traffic: always(listed('name contains "identity" sort by name limit 500')),
  },
  {
    name: 'GET identities/{id}/policy-advice/{serviceId}',
    budget: budgets.policyAdvice,
    needs: [management('GET', '/identities/{id}/policy-advice/{serviceId}')],
    inFlight: 8,
    isFlat: true,
    async traffic(network) {
      const services = shuffled(await network.serviceIds())
      return forEachIdentity(({ id, at }) => `/identities/${id}/policy-advice/${services[at % services.length]}`)(
        network,
      )
    },
  },
]

export const changingWorkloads: readonly Workload[] = [
  {
    name: 'PATCH identities/{id} role attributes',
    budget: budgets.identityRoles,
    needs: [management('PATCH', '/identities/{id}')],
    inFlight: 8,
    isFlat: true,
    traffic: (network) => roleChanges(network),
  },
  {
    name: 'POST identities with an ott enrollment',
    budget: budgets.identityWithToken,
    needs: [management('POST', '/identities')],
    inFlight: 8,
    isFlat: true,
    traffic: creations,
  },
]

/**
 * Every identity moves to another team and, when its turn comes again, back: each request changes something.
 * @param from another even number than the last time, if not all were sent
 */
export async function roleChanges(network: Network, from = 0): Promise<Traffic> {
  const { api, model } = network
  const all = await network.identities()
  const moved = (by: number) =>
    all.map(({ id, at }) => {
      const { roleAttributes } = identityBody('', at + from + by, model)
      return api.managementRequest('PATCH', `/identities/${id}`, { roleAttributes })
    })
  return { requests: [...moved(1), ...moved(0)] }
}

/** New identities, of each team as many. */
export async function creations({ api, model }: Network): Promise<Traffic> {
  const requests = Array.from({ length: model.policies }, (_, at) =>
    api.managementRequest('POST', '/identities', {
      ...identityBody(`created-${COUNTER}`, at, model),
      enrollment: { ott: true },
    }),
  )
  return { requests }
}
