// A small network for tests of access, made over the API: who, what, over which routers, by which policies.
import type { ChangedService } from '../../src/access/posture/accept-posture-responses.ts'
import { CLIENT, type TestController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'

/** Someone who has signed in. */
export interface Person {
  readonly id: string
  readonly token: string
}

export interface SmallNetwork extends Management {
  /** An identity that is signed in. */
  person(name: string, roleAttributes?: string[], isAdmin?: boolean): Promise<Person>
  service(name: string, roleAttributes?: string[]): Promise<string>
  router(name: string, roleAttributes?: string[]): Promise<string>
  servicePolicy(type: 'Dial' | 'Bind', identityRoles: string[], serviceRoles: string[], more?: object): Promise<string>
  edgeRouterPolicy(identityRoles: string[], edgeRouterRoles: string[], more?: object): Promise<string>
  serviceEdgeRouterPolicy(serviceRoles: string[], edgeRouterRoles: string[], more?: object): Promise<string>
  /** Everything may be reached over every router. */
  openRouters(): Promise<void>
  /** A request to the client API. */
  ask(who: Pick<Person, 'token'>, method: string, path: string, body?: unknown): ReturnType<TestController['send']>
  dial(who: Pick<Person, 'token'>, serviceId: string, type?: string): ReturnType<TestController['send']>
  /** Reports the state of a machine, and returns the services that this has changed. */
  report(who: Pick<Person, 'token'>, response: object): Promise<ChangedService[]>
  /** Ids of the sessions that are alive. */
  sessionIds(): Promise<string[]>
}

let sequence = 0

export async function smallNetwork(world: TestController): Promise<SmallNetwork> {
  const management = await managementOf(world)
  const { make, get } = management
  const policy = (kind: string, body: object, more: object) =>
    make(kind, { name: `${kind} ${++sequence}`, semantic: 'AnyOf', ...body, ...more })
  const ask: SmallNetwork['ask'] = ({ token }, method, path, body) =>
    world.send({ method, path: CLIENT + path, token, ...(body === undefined ? {} : { body }) })
  const network: SmallNetwork = {
    ...management,
    person: (name, roleAttributes = [], isAdmin = false) => world.signIn({ name, roleAttributes, isAdmin }),
    service: (name, roleAttributes = []) => make('services', { name, roleAttributes, encryptionRequired: true }),
    router: (name, roleAttributes = []) => make('edge-routers', { name, roleAttributes }),
    servicePolicy: (type, identityRoles, serviceRoles, more = {}) =>
      policy('service-policies', { type, identityRoles, serviceRoles }, more),
    edgeRouterPolicy: (identityRoles, edgeRouterRoles, more = {}) =>
      policy('edge-router-policies', { identityRoles, edgeRouterRoles }, more),
    serviceEdgeRouterPolicy: (serviceRoles, edgeRouterRoles, more = {}) =>
      policy('service-edge-router-policies', { serviceRoles, edgeRouterRoles }, more),
    async openRouters() {
      await network.edgeRouterPolicy(['#all'], ['#all'])
      await network.serviceEdgeRouterPolicy(['#all'], ['#all'])
    },
    ask,
    dial: (who, serviceId, type = 'Dial') => ask(who, 'POST', '/sessions', { serviceId, type }),
    async report({ token }, response) {
      const body = { id: 'any', ...response }
      const { status, body: sent } = await world.send({
        method: 'POST',
        path: `${CLIENT}/posture-response`,
        token,
        body,
      })
      if (status !== 201) throw new Error(`the posture response was refused: ${JSON.stringify(sent)}`)
      return sent.data.services
    },
    sessionIds: async () => ((await get('/sessions?limit=500')) as { id: string }[]).map(({ id }) => id),
  }
  return network
}
