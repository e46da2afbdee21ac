// The requests of clients if posture checks guard their services. It comes last, because it guards the services of all.
import { CLIENT } from '../controller/api.ts'
import type { Traffic } from '../generator/generator.ts'
import type { RequestParts } from '../generator/requests.ts'
import { asClients, enrolledClients } from '../model/clients.ts'
import type { Network } from '../model/network.ts'
import { ownServices } from './clients.ts'
import { client, management, type Workload } from './workload.ts'

const needs = [
  client('POST', '/posture-response'),
  management('POST', '/posture-checks'),
  management('PATCH', '/service-policies/{id}'),
]

const report = (version: string): RequestParts => ({
  method: 'POST',
  path: `${CLIENT}/posture-response`,
  body: { id: 'bench', typeId: 'OS', type: 'Linux', version },
})

/** Each client reports these versions in turn, on guarded services. */
const reporting =
  (...versions: readonly string[]) =>
  async (network: Network): Promise<Traffic> => {
    await network.guardedServices()
    const clients = await enrolledClients(network)
    return { requests: versions.flatMap((version) => asClients(clients, report(version))) }
  }

export const postureWorkloads: readonly Workload[] = [
  {
    name: 'POST posture-response (nothing changes)',
    needs,
    inFlight: 8,
    isFlat: true,
    traffic: reporting('6.1.0'),
  },
  {
    name: 'POST posture-response (another version, no service changes)',
    needs,
    inFlight: 8,
    isFlat: true,
    traffic: reporting('6.1.0', '6.2.0'),
  },
  {
    name: 'POST posture-response (20 services change)',
    needs,
    inFlight: 8,
    isFlat: true,
    traffic: reporting('6.1.0', '5.1.0'),
  },
  {
    name: 'GET services?limit=100 (20 seen, guarded)',
    needs: [...needs, client('GET', '/services')],
    inFlight: 8,
    isFlat: true,
    async traffic(network) {
      await network.guardedServices()
      return { requests: asClients(await enrolledClients(network), ownServices) }
    },
  },
]
