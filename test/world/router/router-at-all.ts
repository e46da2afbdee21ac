// A router of release 2 that is connected to several controllers, and forwards as each of them tells it.
import type { EnrolledRouter } from './enrolled-router.ts'
import { ForwardingRouter } from './forwarding-router.ts'

/** The address at which a router reaches a controller. */
export interface ControlAddress {
  readonly url: string
  readonly rootPem: string
}

export class RouterAtAll {
  readonly enrolled: EnrolledRouter
  /** Circuit → address → where data from it goes; the same for all controllers. */
  readonly tables: ForwardingRouter['tables'] = new Map()
  readonly #channels = new Map<string, ForwardingRouter>()
  /** The last connection to each controller, also one that has ended. */
  readonly #earlier = new Map<string, ForwardingRouter>()

  constructor(enrolled: EnrolledRouter) {
    this.enrolled = enrolled
  }

  get id(): string {
    return this.enrolled.id
  }

  /** Its connection to a controller. */
  at(name: string): ForwardingRouter {
    const channel = this.#channels.get(name)
    if (!channel) throw new Error(`the router is not connected to ${name}`)
    return channel
  }

  /** Connects to a controller, as soon as that takes it. Returns the connection. */
  async connect(name: string, address: ControlAddress): Promise<ForwardingRouter> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const earlier = this.#earlier.get(name)
        const channel = await ForwardingRouter.connect(address, this.enrolled, earlier, 2, this.tables)
        this.#channels.set(name, channel)
        this.#earlier.set(name, channel)
        return channel
      } catch (error) {
        if (attempt === 200) throw error
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  /** Ends its connection to a controller. */
  async disconnect(name: string): Promise<void> {
    await this.at(name).wire.close()
    this.#channels.delete(name)
  }

  /** The circuits that any controller had it drop. */
  get unroutedIds(): string[] {
    return [...this.#channels.values()].flatMap(({ unroutes }) => unroutes.map(({ circuitId }) => circuitId))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#channels.values()].map(({ wire }) => wire.close()))
    this.#channels.clear()
  }
}
