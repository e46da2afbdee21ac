// A controller with a model in it, and what the measurements need to know of that.
import { Api, forEach, MANAGEMENT, type Need } from '../controller/api.ts'
import type { ControllerProcess } from '../controller/controller-process.ts'
import type { Generator } from '../generator/generator.ts'
import type { Outcome } from '../generator/plan.ts'
import { shuffled } from './random.ts'
import {
  edgeRouterBody,
  edgeRouterPolicyBody,
  identityBody,
  identityName,
  identityNumber,
  postureCheckBody,
  serviceBody,
  serviceEdgeRouterPolicyBody,
  servicePolicyBody,
} from './records.ts'
import type { Model } from './sizes.ts'

/** Receives the progress of loading: so many records of a kind out of all of them. */
export type LoadProgress = (what: string, done: number, total: number) => void

/** Identities that measurements read and change; more would only take memory of the generator. */
const MAX_NAMED = 10_000
const NAMED_TOGETHER = 500
const LOADING_IN_FLIGHT = 8
const LOADED = 'name contains "identity-"'

const POSTURE_CHECKS = 50

/** Records of one kind, by the plural that stands in its path. */
interface RecordsToLoad {
  readonly kind: string
  readonly count: number
  body(at: number): unknown
}

interface Named {
  readonly id: string
  readonly name: string
}

/** The result of loading. */
export interface Loading {
  /** Parts of the model that the controller has no operation for yet. */
  readonly missing: readonly Need[]
  /** Of the identities. */
  readonly outcome: Outcome
  readonly cpuMicroseconds: number
  /** Resident memory of the controller with the whole model. */
  readonly residentBytes: number
}

export interface NetworkParts {
  readonly model: Model
  readonly controller: ControllerProcess
  readonly generator: Generator
}

export class Network {
  readonly model: Model
  readonly controller: ControllerProcess
  readonly api: Api
  /** For loading, and for making what measurements use up. */
  readonly generator: Generator
  readonly #cache = new Map<string, Promise<unknown>>()

  private constructor(model: Model, controller: ControllerProcess, generator: Generator) {
    this.model = model
    this.controller = controller
    this.api = new Api(controller.target)
    this.generator = generator
  }

  /** Starts a controller for a model, and signs in. */
  static async start({ model, controller, generator }: NetworkParts): Promise<Network> {
    await controller.start()
    const network = new Network(model, controller, generator)
    await network.api.signIn()
    return network
  }

  /** Loads the model through the public API. */
  async load(onProgress: LoadProgress): Promise<Loading> {
    const missing: Need[] = []
    for (const records of this.#policiesAndWhatTheyGrant()) {
      const need = { api: 'management', method: 'POST', path: `/${records.kind}` } as const
      if ((await this.api.missing([need])).length > 0) missing.push(need)
      else await this.#create(records, onProgress)
    }
    const before = this.controller.cpuMicroseconds
    const outcome = await this.#create(this.#identityRecords(), onProgress)
    const cpuMicroseconds = this.controller.cpuMicroseconds - before
    return { missing, outcome, cpuMicroseconds, residentBytes: this.controller.residentBytes }
  }

  /** Ids of identities, each with the number it was made from: of all, or of a sample from everywhere among them. */
  identities(most = MAX_NAMED): Promise<readonly { readonly id: string; readonly at: number }[]> {
    return this.once(`${most} identities`, async () => {
      const { identities } = this.model
      const pages = Math.ceil(Math.min(most, identities) / NAMED_TOGETHER)
      const result = await forEach(Array.from({ length: pages }), (_, page) => {
        const skip = Math.floor((page * identities) / pages)
        return this.api.page<Named>('/identities', `${LOADED} sort by name`, skip, NAMED_TOGETHER)
      })
      return shuffled(result.flat().map(({ id, name }) => ({ id, at: identityNumber(name) })))
    })
  }

  serviceIds(): Promise<readonly string[]> {
    return this.once('services', async () => {
      const records = await this.api.records<Named>('/services', 'true sort by name', this.model.services)
      return records.map(({ id }) => id)
    })
  }

  /** Lets each service policy demand one of fifty posture checks, which machines with Linux 6 pass. */
  guardedServices(): Promise<void> {
    return this.once('guarded services', async () => {
      const checks = await forEach(Array.from({ length: POSTURE_CHECKS }), async (_, at) => {
        const path = `${MANAGEMENT}/posture-checks`
        const record = await this.api.asAdministrator({ method: 'POST', path, body: postureCheckBody(at) })
        return (record as Named).id
      })
      const policies = await this.api.records<Named>('/service-policies', 'true sort by name', this.model.policies)
      await forEach(policies, ({ id }, at) =>
        this.api.asAdministrator({
          method: 'PATCH',
          path: `${MANAGEMENT}/service-policies/${id}`,
          body: { postureCheckRoles: [`@${checks[at % checks.length]}`] },
        }),
      )
    })
  }

  /** Returns the result of `find` in this network, which is called once for all measurements that need it. */
  once<T>(what: string, find: () => Promise<T>): Promise<T> {
    const cached = this.#cache.get(what) as Promise<T> | undefined
    const result = cached ?? find()
    this.#cache.set(what, result)
    return result
  }

  #policiesAndWhatTheyGrant(): RecordsToLoad[] {
    const { model } = this
    const { services, policies, edgeRouters } = model
    return [
      { kind: 'services', count: services, body: (at) => serviceBody(at, model) },
      { kind: 'service-policies', count: policies, body: (at) => servicePolicyBody(at, model) },
      { kind: 'edge-routers', count: edgeRouters, body: (at) => edgeRouterBody(at, model) },
      { kind: 'edge-router-policies', count: policies, body: (at) => edgeRouterPolicyBody(at, model) },
      { kind: 'service-edge-router-policies', count: 1, body: () => serviceEdgeRouterPolicyBody },
    ]
  }

  #identityRecords(): RecordsToLoad {
    const body = (at: number) => identityBody(identityName(at), at, this.model)
    return { kind: 'identities', count: this.model.identities, body }
  }

  #create({ kind, count, body }: RecordsToLoad, onProgress: LoadProgress): Promise<Outcome> {
    const requests = Array.from({ length: count }, (_, at) => this.api.managementRequest('POST', `/${kind}`, body(at)))
    onProgress(kind, 0, count)
    return this.generator.sendAll(this.controller.target, requests, {
      inFlight: LOADING_IN_FLIGHT,
      onProgress: (done) => onProgress(kind, done, count),
    })
  }
}
