// Identities that enroll: their one-time tokens, their keys, and the sessions they sign in to.
import { CLIENT, forEach } from '../controller/api.ts'
import type { Credential } from '../generator/connection.ts'
import { type RequestParts, requestBytes } from '../generator/requests.ts'
import type { Network } from './network.ts'
import { identityBody } from './records.ts'
import { clientKey } from './signing-request.ts'

/** An enrolled identity that is signed in. */
export interface Client {
  readonly id: string
  readonly credential: Credential
  /** The headers of its session, as OpenZiti's clients send them. */
  readonly session: Readonly<Record<string, string>>
}

/** Everything an identity needs to enroll. */
export interface Invitation {
  readonly identityId: string
  readonly request: RequestParts
  /** PEM of the private key that the request is signed with. */
  readonly key: string
}

const CREATING_IN_FLIGHT = 8
const SIGN_INS_IN_FLIGHT = 8

export const signIn: RequestParts = { method: 'POST', path: `${CLIENT}/authenticate?method=cert`, body: {} }

let invited = 0

/** Makes new identities with a one-time token each, and signing requests for them. */
export async function invitations(network: Network, count: number): Promise<Invitation[]> {
  const { api, model, generator } = network
  const prefix = `invited-${++invited}-`
  const requests = Array.from({ length: count }, (_, at) =>
    api.managementRequest('POST', '/identities', {
      ...identityBody(`${prefix}${at}`, at, model),
      enrollment: { ott: true },
    }),
  )
  await generator.sendAll(api.target, requests, { inFlight: CREATING_IN_FLIGHT })
  const records = await api.records<{ id: string; name: string; enrollment: { ott: { token: string } } }>(
    '/identities',
    `name contains "${prefix}" sort by name`,
    count,
  )
  return records.map(({ id, name, enrollment }) => {
    const { key, request } = clientKey(name)
    return {
      identityId: id,
      key,
      request: {
        method: 'POST',
        path: `${CLIENT}/enroll?method=ott&token=${enrollment.ott.token}`,
        headers: { 'Content-Type': 'application/x-pem-file' },
        body: request,
      },
    }
  })
}

/** The clients of the model: enrolled, and signed in with their certificates. */
export function enrolledClients(network: Network): Promise<readonly Client[]> {
  return network.once('clients', () => enrollClients(network))
}

async function enrollClients(network: Network): Promise<Client[]> {
  const { api, model } = network
  return forEach(await invitations(network, model.clients), async ({ identityId, request, key }) => {
    const { cert } = (await api.data(request)) as { cert: string }
    const credential = { cert, key }
    const { token } = (await api.data(signIn, credential)) as { token: string }
    return { id: identityId, credential, session: { 'zt-session': token } }
  })
}

/** Opens API sessions: the clients sign in again with their certificates, in turn. */
export async function openSessions(network: Network, sessions: number): Promise<void> {
  const credentials = (await enrolledClients(network)).map(({ credential }) => credential)
  const requests = Array.from({ length: sessions }, () => requestBytes(signIn))
  const traffic = { requests, isOnce: true, credentials, connectsEachTime: true }
  const { target } = network.controller
  const run = await network.generator.prepareLoop(target, traffic, { inFlight: SIGN_INS_IN_FLIGHT })
  const { failures } = await run.go()
  if (failures[0]) throw new Error(`${failures[0].times} sign-ins failed: ${failures[0].what}`)
}

/** The bytes of requests that the clients send in turn. */
export function asClients(clients: readonly Client[], parts: RequestParts): Buffer[] {
  return clients.map(({ session }) => requestBytes({ ...parts, headers: { ...parts.headers, ...session } }))
}
