// The requests of every client of the network, most of them every few seconds.

import { budgets } from '../budgets.ts'
import { CLIENT, forEach } from '../controller/api.ts'
import { type RequestParts, requestBytes } from '../generator/requests.ts'
import { asClients, enrolledClients } from '../model/clients.ts'
import { enrolledRouters } from '../model/edge-routers.ts'
import type { Network } from '../model/network.ts'
import { openIdSessions } from '../model/open-id-clients.ts'
import { client, management, type Workload } from './workload.ts'

/** The poll by which a client learns that something changed. */
export const poll: RequestParts = { method: 'GET', path: `${CLIENT}/current-api-session/service-updates` }
export const ownServices: RequestParts = { method: 'GET', path: `${CLIENT}/services?limit=100` }

const byClients = (parts: RequestParts) => async (network: Network) => ({
  requests: asClients(await enrolledClients(network), parts),
})

export const clientWorkloads: readonly Workload[] = [
  {
    name: 'GET version',
    budget: budgets.version,
    needs: [client('GET', '/version')],
    inFlight: 8,
    traffic: async () => ({ requests: [requestBytes({ method: 'GET', path: `${CLIENT}/version` })] }),
  },
  {
    name: 'GET current-api-session/service-updates',
    budget: budgets.serviceUpdates,
    needs: [client('GET', '/current-api-session/service-updates')],
    inFlight: 8,
    isFlat: true,
    traffic: byClients(poll),
  },
  {
    name: 'GET current-api-session/service-updates, by access token',
    budget: budgets.serviceUpdatesByToken,
    needs: [client('GET', '/current-api-session/service-updates')],
    inFlight: 8,
    traffic: async (network) => ({
      requests: (await openIdSessions(network)).map((headers) => requestBytes({ ...poll, headers })),
    }),
  },
  {
    name: 'GET current-api-session',
    budget: budgets.currentApiSession,
    needs: [client('GET', '/current-api-session')],
    inFlight: 8,
    isFlat: true,
    traffic: byClients({ method: 'GET', path: `${CLIENT}/current-api-session` }),
  },
  {
    name: 'GET current-identity',
    budget: budgets.currentIdentity,
    needs: [client('GET', '/current-identity')],
    inFlight: 8,
    isFlat: true,
    traffic: byClients({ method: 'GET', path: `${CLIENT}/current-identity` }),
  },
  {
    name: 'GET services?limit=100 (20 seen)',
    budget: budgets.ownServices,
    needs: [client('GET', '/services')],
    inFlight: 8,
    isFlat: true,
    traffic: byClients(ownServices),
  },
  {
    name: 'GET current-identity/edge-routers (1 seen)',
    budget: budgets.ownRouters,
    needs: [client('GET', '/current-identity/edge-routers'), management('POST', '/edge-router-policies')],
    inFlight: 8,
    isFlat: true,
    async traffic(network) {
      await enrolledRouters(network)
      return byClients({ method: 'GET', path: `${CLIENT}/current-identity/edge-routers` })(network)
    },
  },
  {
    name: 'POST sessions (again)',
    budget: budgets.sessionAgain,
    needs: [
      client('POST', '/sessions'),
      management('POST', '/edge-router-policies'),
      management('POST', '/service-edge-router-policies'),
    ],
    inFlight: 8,
    traffic: dialling,
  },
]

/** Each client dials the first service it sees, again and again. */
async function dialling(network: Network) {
  const requests = await forEach(await enrolledClients(network), async ({ session }) => {
    const [service] = (await network.api.data({ ...ownServices, headers: session })) as { id: string }[]
    const dial: RequestParts = {
      method: 'POST',
      path: `${CLIENT}/sessions`,
      headers: session,
      body: { serviceId: service?.id, type: 'Dial' },
    }
    // The repeat is measured, because making a session costs a commit.
    await network.api.data(dial)
    return requestBytes(dial)
  })
  return { requests }
}
