// The means that all measurements of a run share: the loaded networks, the generators, the bare server. Each is made when it is first
// needed, so that a run of one measurement does not wait for the others'.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ControllerProcess } from './controller/controller-process.ts'
import { Floor } from './controller/floor.ts'
import { storageOf } from './controller/storage.ts'
import { Generator } from './generator/generator.ts'
import { KeptNetworks } from './model/kept-networks.ts'
import { type Loading, Network } from './model/network.ts'
import { type Model, type ModelName, models } from './model/sizes.ts'
import { NotBuiltYet } from './not-built-yet.ts'
import type { Progress } from './report/progress.ts'

// Linux has it on every system that shares memory between processes.
const TMPFS = '/dev/shm'

// Routers are told about sessions, not of identities: so few load quickly.
const MAX_WITH_ROUTERS = 1_000

export interface BenchOptions {
  readonly model: ModelName
  readonly seconds: number
  /** The directory for profiles; nothing is profiled without it. */
  readonly profile: string | undefined
  /** The directory that keeps loaded networks for later runs; each run loads its own without it. */
  readonly networks: string | undefined
}

/** A network and how its loading went; undefined if an earlier run loaded it. */
export interface Loaded {
  readonly network: Network
  readonly loading: Loading | undefined
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
  readonly #kept: KeptNetworks | undefined
  readonly #running: Network[] = []
  #tmpfsDirectory: string | undefined
  #floor: Promise<Floor> | undefined

  constructor({ model, seconds, profile, networks }: BenchOptions, progress: Progress) {
    this.model = models[model]
    this.milliseconds = seconds * 1000
    this.profile = profile
    this.progress = progress
    this.#kept = networks === undefined ? undefined : new KeptNetworks(networks)
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

  /** A network of its own for routers of release 2, because it is another one for ever once one has connected. */
  loadedForFollowing(): Promise<Loaded> {
    return this.#load('following', this.model)
  }

  /** A copy of the network of the model whose files are in memory. @throws NotBuiltYet if this system has no such directory */
  loadedOnTmpfs(): Promise<Loaded> {
    return this.#once('tmpfs', async () => {
      if (!existsSync(TMPFS) || storageOf(TMPFS) !== 'tmpfs') throw new NotBuiltYet(`${TMPFS} is not in memory`)
      const { model, controller } = (await this.loaded()).network
      this.#tmpfsDirectory = mkdtempSync(join(TMPFS, 'bench-'))
      const directory = join(this.#tmpfsDirectory, 'network')
      await controller.stop()
      const copy = await ControllerProcess.makeFrom(controller.directory, directory)
      await controller.start()
      return { network: await this.#start(model, copy), loading: undefined }
    })
  }

  /** A new directory for files of one measurement. */
  makeDirectory(): string {
    return mkdtempSync(join(this.#directory, 'files-'))
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
    for (const directory of [this.#directory, this.#tmpfsDirectory])
      if (directory) rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }

  #load(name: string, model: Model): Promise<Loaded> {
    return this.#once(name, () => this.#loadNew(name, model))
  }

  #once(name: string, load: () => Promise<Loaded>): Promise<Loaded> {
    const loading = this.#networks.get(name) ?? load()
    this.#networks.set(name, loading)
    return loading
  }

  async #start(model: Model, controller: ControllerProcess): Promise<Network> {
    const network = await Network.start({ model, controller, generator: this.generator })
    this.#running.push(network)
    return network
  }

  async #loadNew(name: string, model: Model): Promise<Loaded> {
    const directory = join(this.#directory, name)
    const copy = this.#kept?.find(model)
    const controller = await (copy ? ControllerProcess.makeFrom(copy, directory) : ControllerProcess.make(directory))
    const network = await this.#start(model, controller)
    if (copy) return { network, loading: undefined }
    const loading = await network.load((what, done, total) => this.progress.share(`loading ${what}`, done, total))
    this.progress.clear()
    await this.#kept?.keep(network)
    return { network, loading }
  }
}
