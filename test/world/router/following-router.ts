// A router of release 2 that follows the data model: it subscribes, and applies what it is sent.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { Message } from '../../../server/control-channel/message.ts'
import { SubscribeToDataModelRequestSchema } from '../../../server/control-channel/messages/edge_pb.ts'
import type { EnrolledRouter } from './enrolled-router.ts'
import { ModelReplica } from './model-replica.ts'
import { groupedHeaders, SimulatedRouter } from './simulated-router.ts'

let subscriptions = 0

/** Renders the request by which a router subscribes. */
export function encodeSubscription(values: MessageInitShape<typeof SubscribeToDataModelRequestSchema>): Uint8Array {
  const request = create(SubscribeToDataModelRequestSchema, { subscriptionDurationSeconds: 300, ...values })
  return toBinary(SubscribeToDataModelRequestSchema, request)
}

export class FollowingRouter {
  readonly id: string
  readonly wire: SimulatedRouter
  readonly replica: ModelReplica
  subscriptionId = ''
  /** How many whole models it was sent, and the outcomes of sets. */
  states = 0
  readonly sets: string[] = []

  private constructor(id: string, wire: SimulatedRouter, replica: ModelReplica) {
    this.id = id
    this.wire = wire
    this.replica = replica
    wire.takeAtOnce = (message) => this.#take(message)
    for (const message of wire.received.splice(0)) if (!this.#take(message)) wire.received.push(message)
  }

  /** Connects, with the model that it has from before. It has not subscribed yet. */
  static async connect(
    address: { url: string; rootPem: string },
    enrolled: EnrolledRouter,
    replica = new ModelReplica(),
  ): Promise<FollowingRouter> {
    const wire = await SimulatedRouter.open({ ...address, ...enrolled })
    wire.introduce(enrolled.id, groupedHeaders())
    await wire.takeType(2)
    return new FollowingRouter(enrolled.id, wire, replica)
  }

  /** Subscribes from what it has. */
  subscribe(
    values: { currentIndex?: bigint; timelineId?: string; renew?: boolean; subscriptionId?: string } = {},
  ): void {
    this.subscriptionId = values.subscriptionId ?? `subscription-${++subscriptions}`
    const { index, timeline: timelineId } = this.replica
    const request = { currentIndex: BigInt(index), timelineId, ...values, subscriptionId: this.subscriptionId }
    this.wire.send(20505, encodeSubscription(request))
  }

  /** Resolves when it has the model at this index. */
  async reach(index: number): Promise<void> {
    while (this.replica.index < index) {
      const before = this.replica.index
      await this.wire.next()
      if (this.replica.index < before) throw new Error('the index fell')
    }
  }

  #take({ type, headers, body }: Message): boolean {
    const isOwn = headers.get(1026)?.toString() === this.subscriptionId
    if (type === 20500) {
      if (isOwn) {
        this.replica.takeState(body)
        this.states += 1
      }
      return true
    }
    if (type !== 20501 || (headers.has(1026) && !isOwn)) return type === 20501
    const outcome = this.replica.takeChanges(body)
    if (headers.has(1026)) this.sets.push(outcome)
    if (outcome === 'gap') this.subscribe()
    return true
  }
}
