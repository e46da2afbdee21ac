// Loaded networks that are kept for later runs, because a large one takes minutes to load.
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Network } from './network.ts'
import type { Model } from './sizes.ts'

/**
 * Each run works on a copy, so that what is kept stays as it was loaded. A controller with another schema cannot open it: then
 * the directory has to be deleted.
 */
export class KeptNetworks {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** The directory of a controller with that model, or undefined. */
  find(model: Model): string | undefined {
    const directory = this.#directoryOf(model)
    return existsSync(directory) ? directory : undefined
  }

  /** Copies a network that was just loaded; its controller is restarted. */
  async keep({ model, controller }: Network): Promise<void> {
    const directory = this.#directoryOf(model)
    const part = `${directory}.part`
    mkdirSync(this.#directory, { recursive: true })
    rmSync(part, { recursive: true, force: true })
    await controller.stop()
    controller.copyTo(part)
    renameSync(part, directory)
    await controller.start()
  }

  #directoryOf({ identities, services, policies, edgeRouters }: Model): string {
    return join(this.#directory, ['identities', identities, services, policies, edgeRouters].join('-'))
  }
}
