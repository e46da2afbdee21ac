// Hosts of services behind a simulated router: sessions as the API gives them, and what the router asks for on their behalf.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  RemoveTerminatorsRequestSchema,
  ValidateTerminatorsV2RequestSchema,
  ValidateTerminatorsV2ResponseSchema,
} from '../../../server/control-channel/messages/control_pb.ts'
import {
  CreateTerminatorV2RequestSchema,
  CreateTerminatorV2ResponseSchema,
  UpdateTerminatorRequestSchema,
} from '../../../server/control-channel/messages/edge_pb.ts'
import { CLIENT, type TestController } from '../controller.ts'
import { type Management, managementOf } from '../management.ts'
import { newName } from '../names.ts'
import type { SimulatedRouter } from './simulated-router.ts'

/** A client that is signed in, with a session for a service. */
export interface Client {
  readonly identityId: string
  readonly apiToken: string
  readonly sessionId: string
  readonly sessionToken: string
}

/** Services that every identity may dial and host, over every router. */
export interface OpenNetwork {
  readonly manage: Management
  readonly bindPolicyId: string
  readonly dialPolicyId: string
  readonly routerPolicyId: string
  makeService(values?: object): Promise<string>
  /** Signs a client in, and opens a session. A client that is signed in already opens one more. */
  openSession(serviceId: string, type?: 'Dial' | 'Bind', client?: Client): Promise<Client>
}

export async function openNetwork(world: TestController): Promise<OpenNetwork> {
  const manage = await managementOf(world)
  const everyone = { semantic: 'AnyOf', identityRoles: ['#all'] }
  const makePolicy = (type: string) =>
    manage.make('service-policies', { ...everyone, name: newName('policy'), type, serviceRoles: ['#all'] })
  const routerPolicy = { ...everyone, name: newName('policy'), edgeRouterRoles: ['#all'] }
  const servicePolicy = {
    name: newName('policy'),
    semantic: 'AnyOf',
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  }
  const routerPolicyId = await manage.make('edge-router-policies', routerPolicy)
  await manage.make('service-edge-router-policies', servicePolicy)
  return {
    manage,
    routerPolicyId,
    bindPolicyId: await makePolicy('Bind'),
    dialPolicyId: await makePolicy('Dial'),
    makeService: (values = {}) =>
      manage.make('services', { name: newName('service'), encryptionRequired: true, ...values }),
    async openSession(serviceId, type = 'Bind', client) {
      const { id, token } = client ? { id: client.identityId, token: client.apiToken } : await world.signIn()
      const body = { serviceId, type }
      const { status, body: response } = await world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body })
      if (status !== 201) throw new Error(`no session: ${JSON.stringify(response)}`)
      return { identityId: id, apiToken: token, sessionId: response.data.id, sessionToken: response.data.token }
    },
  }
}

/** The members of a client that its router reports when it hosts. */
export type HostClient = Pick<Client, 'sessionToken' | 'apiToken'>

/** By what a router says that a client is connected: its API session, or the SHA-1 fingerprints of its certificates. */
export interface HostProof {
  readonly apiSessionToken?: string
  readonly fingerprints?: string[]
}

/** A request for a terminator; the public key of its host is 32 bytes of 7. */
export interface BindOptions {
  readonly address: string
  readonly client: HostClient
  /** The API session of the client by default. */
  readonly proof?: HostProof
  readonly cost?: number
  /** 0 default, 1 required, 2 failed. */
  readonly precedence?: number
  readonly instanceId?: string
  readonly instanceSecret?: Uint8Array
  readonly peerData?: Readonly<Record<number, Uint8Array>>
}

let addresses = 0

/** Another address of a terminator, as routers choose them. */
export const newAddress = () => `terminator-${++addresses}`

export const HOST_KEY = Buffer.alloc(32, 7)

/** Peer data with as many entries of as many bytes. */
export const newPeerData = (entries: number, bytes = 0): Record<number, Uint8Array> =>
  Object.fromEntries(Array.from({ length: entries }, (_, at) => [2_000 + at, Buffer.alloc(bytes)] as const))

/** Asks for a terminator as a router does when a host binds, and returns the response. */
export async function bind(router: SimulatedRouter, { client, proof, ...options }: BindOptions) {
  const { sessionToken, apiToken } = client
  const request = create(CreateTerminatorV2RequestSchema, {
    peerData: { 1003: HOST_KEY },
    sessionToken,
    ...(proof ?? { apiSessionToken: apiToken }),
    ...options,
  })
  const sequence = router.send(20216, toBinary(CreateTerminatorV2RequestSchema, request))
  const { type, body } = await router.takeReply(sequence)
  if (type !== 20217) throw new Error(`the response to a bind has type ${type}`)
  return fromBinary(CreateTerminatorV2ResponseSchema, body)
}

/** The changed members of a terminator. */
export interface TerminatorChanges {
  readonly cost?: number
  readonly updateCost?: boolean
  readonly precedence?: number
  readonly updatePrecedence?: boolean
}

/** Asks for a change of a terminator as a router does. Returns the type of the response, and the code of a refusal. */
export async function update(
  router: SimulatedRouter,
  client: HostClient,
  terminatorId: string,
  changes: TerminatorChanges,
  proof: HostProof = { apiSessionToken: client.apiToken },
) {
  const { sessionToken } = client
  const request = create(UpdateTerminatorRequestSchema, { sessionToken, terminatorId, ...changes, ...proof })
  const sequence = router.send(20209, toBinary(UpdateTerminatorRequestSchema, request))
  const { type, headers } = await router.takeReply(sequence)
  return { type, code: headers.get(1014)?.readUInt32LE() }
}

/** Removes terminators as a router does when its hosts are gone, and returns the result. */
export async function removeTerminators(router: SimulatedRouter, terminatorIds: string[]) {
  const request = create(RemoveTerminatorsRequestSchema, { terminatorIds })
  const { headers } = await router.takeReply(router.send(1038, toBinary(RemoveTerminatorsRequestSchema, request)))
  return { isSuccess: headers.get(2)?.[0] === 1, errorCode: headers.get(10)?.readUInt32LE() }
}

/** The next question of the controller about terminators. */
export async function takeQuestions(router: SimulatedRouter) {
  const message = await router.takeType(1041)
  const { terminators, fixInvalid, postCreate } = fromBinary(ValidateTerminatorsV2RequestSchema, message.body)
  return { message, terminators, fixInvalid, postCreate }
}

/** Responds to a question: these terminators are there, and the others are not. */
export function respondToQuestions(
  router: SimulatedRouter,
  { message, terminators }: Pick<Awaited<ReturnType<typeof takeQuestions>>, 'message' | 'terminators'>,
  validIds: readonly string[],
): void {
  const states = terminators.map(({ id, marker }) => {
    const valid = validIds.includes(id)
    return [id, { valid, marker, reason: valid ? 0 : 1 }] as const
  })
  const response = create(ValidateTerminatorsV2ResponseSchema, { states: Object.fromEntries(states) })
  const replyFor = Buffer.alloc(4)
  replyFor.writeInt32LE(message.sequence)
  router.send(1042, toBinary(ValidateTerminatorsV2ResponseSchema, response), [[1, replyFor]])
}
