// A router of release 2 at several controllers that follows the data model from one of them, and from another one if that is gone.
import type { Message } from '../../../server/control-channel/message.ts'
import { encodeSubscription } from './following-router.ts'
import type { ForwardingRouter } from './forwarding-router.ts'
import { ModelReplica } from './model-replica.ts'

let subscriptions = 0

export class ModelAtAll {
  readonly replica = new ModelReplica()
  /** How many whole models it was sent. */
  states = 0
  #subscriptionId = ''
  #source: ForwardingRouter | undefined
  readonly #channels = new Set<ForwardingRouter>()

  /** Follows from a connection, too, which has just begun. */
  add(channel: ForwardingRouter): void {
    const { wire } = channel
    const forward = wire.takeAtOnce
    wire.takeAtOnce = (message) => this.#take(message) || forward(message)
    for (const message of wire.received.splice(0)) if (!this.#take(message)) wire.received.push(message)
    this.#channels.add(channel)
    if (!this.#source) this.#subscribe(channel)
    wire.closed.then(() => this.#remove(channel))
  }

  #remove(channel: ForwardingRouter): void {
    this.#channels.delete(channel)
    if (this.#source !== channel) return
    const [next] = this.#channels
    this.#source = undefined
    if (next) this.#subscribe(next)
  }

  #subscribe(channel: ForwardingRouter): void {
    this.#source = channel
    this.#subscriptionId = `subscription-at-all-${++subscriptions}`
    const { index, timeline: timelineId } = this.replica
    const request = { currentIndex: BigInt(index), timelineId, subscriptionId: this.#subscriptionId }
    channel.wire.send(20505, encodeSubscription(request))
  }

  #take({ type, headers, body }: Message): boolean {
    if (type !== 20500 && type !== 20501) return false
    const isOwn = headers.get(1026)?.toString() === this.#subscriptionId
    const { index } = this.replica
    if (type === 20500 && isOwn) {
      this.replica.takeState(body)
      this.states += 1
    } else if (type === 20501 && (isOwn || !headers.has(1026))) {
      const outcome = this.replica.takeChanges(body)
      if (outcome === 'gap' && this.#source) this.#subscribe(this.#source)
    }
    if (this.replica.index < index) this.replica.faults.push(`the index fell from ${index} to ${this.replica.index}`)
    return true
  }
}
