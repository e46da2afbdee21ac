// The requests by which callers identify themselves: they enroll once, and sign in.
import { budgets } from '../budgets.ts'
import { CLIENT } from '../controller/api.ts'
import { ADMINISTRATOR } from '../controller/controller-process.ts'
import { requestBytes } from '../generator/requests.ts'
import { enrolledClients, invitations, signIn } from '../model/clients.ts'
import { client, type Workload } from './workload.ts'

// Enough that a run of any length does not use them up; what is left over was made for nothing.
const ENROLLMENTS_PER_SECOND = 1_500

export const signingInWorkloads: readonly Workload[] = [
  {
    name: 'POST authenticate?method=cert, new connection',
    budget: budgets.signInByCertificate,
    needs: [client('POST', '/authenticate')],
    inFlight: 8,
    async traffic(network) {
      const credentials = (await enrolledClients(network)).map(({ credential }) => credential)
      return { requests: credentials.map(() => requestBytes(signIn)), credentials, connectsEachTime: true }
    },
  },
  {
    name: 'POST authenticate?method=password',
    budget: budgets.signInByPassword,
    checksPassword: true,
    needs: [client('POST', '/authenticate')],
    inFlight: 8,
    traffic: async () => ({
      requests: [requestBytes({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body: ADMINISTRATOR })],
    }),
  },
  {
    name: 'POST enroll?method=ott with a P-256 request',
    budget: budgets.enroll,
    needs: [client('POST', '/enroll')],
    inFlight: 8,
    isFlat: true,
    async traffic(network, milliseconds) {
      const invited = await invitations(network, Math.ceil((milliseconds / 1000) * ENROLLMENTS_PER_SECOND))
      return { requests: invited.map(({ request }) => requestBytes(request)), isOnce: true }
    },
  },
]
