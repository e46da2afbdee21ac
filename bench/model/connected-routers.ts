// Edge routers that enroll for the simulated routers, and what a client needs to dial over one of them.

import { type Api, CLIENT, forEach, MANAGEMENT } from '../controller/api.ts'
import type { DialTokens, RouterIdentity } from '../routers/swarm-messages.ts'
import { enrolledClients } from './clients.ts'
import type { Network } from './network.ts'
import { clientKey } from './signing-request.ts'

interface Created {
  readonly id: string
}

/** The routers of the model that connect: enrolled once. */
export function connectableRouters(network: Network): Promise<readonly RouterIdentity[]> {
  return network.once('connectable routers', () => enrollRouters(network.api, network.model.connectedRouters))
}

/** Creates edge routers and enrolls them. */
export function enrollRouters(api: Api, count: number): Promise<RouterIdentity[]> {
  return forEach(Array.from({ length: count }), async (_, at) => {
    const { id } = await create(api, '/edge-routers', { name: `connected-${at}`, roleAttributes: ['connected'] })
    const path = `${MANAGEMENT}/edge-routers/${id}`
    const { enrollmentToken } = (await api.asAdministrator({ method: 'GET', path })) as { enrollmentToken: string }
    const { key, request } = clientKey(id)
    const { cert } = (await api.data({
      method: 'POST',
      path: `${CLIENT}/enroll?method=erott&token=${enrollmentToken}`,
      body: { certCsr: request, serverCertCsr: clientKey(id).request },
    })) as { cert: string }
    return { id, credential: { cert, key } }
  })
}

/** Makes a service with a terminator at a router, which a client of the network can dial over that router. */
export async function makeDialable(network: Network, routerId: string): Promise<DialTokens> {
  const { api } = network
  const [client] = await enrolledClients(network)
  if (!client) throw new Error('the network has no clients')
  const { id: serviceId } = await create(api, '/services', { name: 'dialed', encryptionRequired: false })
  const policy = { name: 'dialed', semantic: 'AnyOf' }
  const [identityRoles, serviceRoles, edgeRouterRoles] = [[`@${client.id}`], [`@${serviceId}`], [`@${routerId}`]]
  await create(api, '/service-policies', { ...policy, type: 'Dial', identityRoles, serviceRoles })
  await create(api, '/edge-router-policies', { ...policy, identityRoles, edgeRouterRoles })
  await create(api, '/service-edge-router-policies', { ...policy, serviceRoles, edgeRouterRoles })
  const address = { binding: 'transport', address: 'tcp:localhost:1' }
  await create(api, '/terminators', { service: serviceId, router: routerId, ...address })
  const session = (await api.data({
    method: 'POST',
    path: `${CLIENT}/sessions`,
    headers: client.session,
    body: { serviceId, type: 'Dial' },
  })) as { token: string }
  return { session: session.token, apiSession: client.session['zt-session'] ?? '' }
}

function create(api: Api, path: string, body: unknown): Promise<Created> {
  return api.asAdministrator({ method: 'POST', path: MANAGEMENT + path, body }) as Promise<Created>
}
