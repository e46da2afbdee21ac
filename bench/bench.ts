// What all measurements of a run share: the loaded networks, the generators, the bare server. Each is made when it is first
// needed, so that a run of one measurement does not wait for the others'.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Floor } from './controller/floor.ts'
import { Generator } from './generator/generator.ts'
import { type Loading, Network } from './model/network.ts'
import { type Model, type ModelName, models } from './model/sizes.ts'
import type { Progress } from './report/progress.ts'

// Routers are told of sessions, not of identities: so few load quickly.
const MAX_WITH_ROUTERS = 1_000

export interface BenchOptions {
  readonly model: ModelName
  readonly seconds: number
  /** Where profiles go; nothing is profiled without it. */
  readonly profile: string | undefined
}

/** A network and how its loading went. */
export interface Loaded {
  readonly network: Network
  readonly loading: Loading
}

export class Bench {
  readonly model: Model
  readonly milliseconds: number
  readonly profile: string | undefined
  readonly progress: Progress
  /** Makes the load that is measured. */
  readonly generator = new Generator()
  /** Makes the few requests beside it whose latency tells what the load does to others. */
  readonly probe = new Generator()
  readonly #directory = mkdtempSync(join(tmpdir(), 'bench-'))
  readonly #networks = new Map<string, Promise<Loaded>>()
  readonly #running: Network[] = []
  #floor: Promise<Floor> | undefined

  constructor({ model, seconds, profile }: BenchOptions, progress: Progress) {
    this.model = models[model]
    this.milliseconds = seconds * 1000
    this.profile = profile
    this.progress = progress
  }

  /** The network of the model. */
  loaded(): Promise<Loaded> {
    return this.#load('model', this.model)
  }

  /** The network of the model with another number of identities. */
  loadedWith(identities: number): Promise<Loaded> {
    return this.#load(`growth-${identities}`, { ...this.model, identities })
  }

  /** A network of its own for routers, because they are granted services that the model's clients are not. */
  loadedForRouters(): Promise<Loaded> {
    return this.#load('routers', { ...this.model, identities: Math.min(this.model.identities, MAX_WITH_ROUTERS) })
  }

  floor(): Promise<Floor> {
    this.#floor ??= this.loaded().then(({ network }) => Floor.start(network.controller.data))
    return this.#floor
  }

  /** Ends everything that was started and removes what was written. */
  async close(): Promise<void> {
    const floor = await this.#floor?.catch(() => undefined)
    await floor?.close()
    await Promise.all([this.generator.close(), this.probe.close()])
    await Promise.allSettled(this.#networks.values())
    try {
      await Promise.all(this.#running.map(({ controller }) => controller.stop()))
    } finally {
      this.abandon()
    }
  }

  /** Ends everything at once. */
  abandon(): void {
    for (const { controller } of this.#running) controller.kill()
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 })
  }

  #load(name: string, model: Model): Promise<Loaded> {
    const network = this.#networks.get(name)
    if (network) return network
    const loading = this.#loadNew(name, model)
    this.#networks.set(name, loading)
    return loading
  }

  async #loadNew(name: string, model: Model): Promise<Loaded> {
    const network = await Network.start({ model, parent: this.#directory, name, generator: this.generator })
    this.#running.push(network)
    const loading = await network.load((what, done, total) => this.progress.share(`loading ${what}`, done, total))
    this.progress.clear()
    return { network, loading }
  }
}
