// The load of a crowd: many clients that come at the same moment, each with a connection of its own.
import { setTimeout as wait } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { Connection, type Target } from './connection.ts'
import type { Crowd, CrowdMember, Load, Outcome, Plan } from './plan.ts'
import { RequestSource } from './requests.ts'
import type { HttpResponse } from './response-reader.ts'
import { Tally } from './tally.ts'

// A client that cannot connect tries again, because the crowd may start before the controller.
const RETRY_INTERVAL_MS = 20

export class CrowdLoad implements Load {
  readonly #target: Target
  readonly #members: readonly { readonly member: CrowdMember; readonly secureContext: SecureContext | undefined }[]
  readonly #source: RequestSource
  readonly #tally = new Tally()
  #isStopped = false

  constructor({ target, requests, countFrom }: Plan, { members }: Crowd) {
    this.#target = target
    this.#source = new RequestSource(requests, countFrom)
    this.#members = members.map((member) => ({
      member,
      secureContext: member.credential && createSecureContext(member.credential),
    }))
  }

  get completed(): number {
    return this.#tally.completed
  }

  async prepare(): Promise<number> {
    return 0
  }

  async run(): Promise<Outcome> {
    const begun = performance.now()
    await Promise.all(this.#members.map(({ member, secureContext }) => this.#take(member, secureContext)))
    return this.#tally.outcome((performance.now() - begun) / 1000)
  }

  stop(): void {
    this.#isStopped = true
  }

  close(): void {}

  /** One member from connecting to its last response. */
  async #take({ requests }: CrowdMember, secureContext: SecureContext | undefined): Promise<void> {
    const begun = performance.now()
    while (!this.#isStopped) {
      const failure = await this.#attend(requests, secureContext)
      if (failure?.code === 'ECONNREFUSED') {
        await wait(RETRY_INTERVAL_MS)
        continue
      }
      if (failure) this.#tally.fail(failure.message)
      else this.#tally.time(performance.now() - begun)
      return
    }
  }

  #attend(
    requests: readonly number[],
    secureContext: SecureContext | undefined,
  ): Promise<NodeJS.ErrnoException | undefined> {
    return new Promise((resolve) => {
      let next = 0
      const proceed = () => {
        const index = requests[next++]
        if (index === undefined) {
          connection.close()
          resolve(undefined)
        } else {
          connection.send(this.#source.at(index))
        }
      }
      const connection = new Connection(
        { target: this.#target, secureContext },
        {
          onOpen: proceed,
          onResponse: (response: HttpResponse) => {
            this.#tally.count(response)
            proceed()
          },
          onFailure: resolve,
        },
      )
    })
  }
}
