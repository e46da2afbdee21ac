// Delivers events to all webhooks: each follows the events from its own stored cursor, and a receiver that fails delays no other.
//
// Each cursor is stored within seconds of a delivery, so that a controller that was killed delivers some events again and loses
// none. The requests themselves are those of `webhook-delivery.ts`.
//
// Of several controllers, one delivers what all of them know, and each what it alone observes, by deliveries of their own.
import { isDeepStrictEqual } from 'node:util'
import type { Kysely } from 'kysely'
import { isDisabled } from '../../authentication/disabling.ts'
import type { OutboundClient } from '../../client/outbound-client.ts'
import { findRights, Rights } from '../../definitions/permissions/rights.ts'
import type { AnyRow } from '../../definitions/resources/define.ts'
import { type EventType, eventTypes, observedEventTypes } from '../../definitions/resources/event-types.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { type DeliveryState, webhooks } from '../../definitions/resources/webhooks.ts'
import { type Clock, toIsoTime } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import type { Log } from '../../foundation/log.ts'
import type { Database } from '../../storage/database.ts'
import { find } from '../../storage/entities/entities.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import type { SecretCipher } from '../../storage/secrets/secret-cipher.ts'
import type { ChangeOf, Commit, RecordOf } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { EventFeed } from '../events/event-feed.ts'
import { objectForm } from '../events/event-message.ts'
import type { WatcherRight } from '../events/watcher.ts'
import { type DeliveryFailure, WebhookDelivery } from './webhook-delivery.ts'
import { signDelivery, toSecretPlace, type Webhook } from './webhook-signature.ts'

/** The events that are delivered: of several controllers those that each has alike, or those that this one alone observes. */
export type DeliveredEvents = 'all' | 'shared' | 'observed'

export interface WebhookDeliveriesParts {
  readonly cipher: SecretCipher
  readonly clock: Clock
  readonly db: Kysely<Database>
  readonly events: EventFeed
  readonly log: Log
  readonly outbound: OutboundClient
  readonly delivered: DeliveredEvents
  /** The deliveries of other events, which fail and end with these. */
  readonly others?: WebhookDeliveries | undefined
}

const isObserved: ReadonlySet<string> = new Set(observedEventTypes)

/** The members of a record that decide about its state, besides how deliveries go. */
interface Switches {
  readonly id: string
  readonly isEnabled: boolean
  readonly isPaused: boolean
}

/** How deliveries go, as records show it. */
interface DeliveryStatus {
  readonly state: DeliveryState
  readonly failure: string | null
  readonly failingSince: string | null
  readonly deliveredAt: string | null
}

interface RunningDelivery {
  readonly delivery: WebhookDelivery
  readonly ownerId: string | null
}

export class WebhookDeliveries implements SideEffect {
  readonly kind = 'side effect'
  readonly name: string
  readonly #parts: WebhookDeliveriesParts
  readonly #running = new Map<string, RunningDelivery>()
  /** Cursors behind what was delivered, by webhook, if they are not stored yet. */
  readonly #unstored = new Map<string, string>()
  /** The cursors that this process has read or stored last: once another controller delivers, it stores others. */
  readonly #stored = new Map<string, string>()
  /** Webhooks have to be read again. */
  #isOutdated = true
  #isClosed = false
  /** Deliveries run in this process. */
  #isServing = false

  constructor(parts: WebhookDeliveriesParts) {
    this.#parts = parts
    this.name = parts.delivered === 'observed' ? 'webhooks of observed events' : 'webhooks'
  }

  apply({ changes }: Commit): void {
    for (const change of changes) {
      const { id } = change
      if (change.resource === webhooks.plural) {
        this.#stop(id)
        if (!change.after) for (const cursors of [this.#unstored, this.#stored]) cursors.delete(id)
      } else if (change.resource === identities.plural && changesRights(change)) {
        for (const [webhookId, { ownerId }] of this.#running) if (ownerId === id) this.#stop(webhookId)
      }
    }
  }

  async restart(): Promise<void> {
    for (const id of [...this.#running.keys()]) this.#stop(id)
    this.#isOutdated = true
  }

  /** Begins deliveries that should run and do not, and stores how far those are that run. */
  async tick(context: Context): Promise<void> {
    this.#isServing = true
    if (this.#isOutdated && !this.#isClosed) {
      this.#isOutdated = false
      const rows = await this.#parts.db
        .selectFrom('webhooks')
        .selectAll()
        .where('enabled', '=', 1)
        .where('pausedAt', 'is', null)
        .execute()
      for (const row of rows) this.#start(context, entityFromRow(webhooks, row as AnyRow) as Webhook)
    }
    await this.flush(context)
  }

  /** Stores up to where events were delivered, unless another controller has delivered since. */
  async flush(context: Context): Promise<void> {
    const cursors = [...this.#unstored]
    // Observed events are in memory only: a place among them has no meaning to another process.
    if (cursors.length === 0 || this.#parts.delivered === 'observed') return
    await context.write(async (tx) => {
      for (const [id, cursor] of cursors) {
        const row = tx.db
          .updateTable('webhooks')
          .where('id', '=', id)
          .where('cursor', '=', this.#stored.get(id) ?? '')
        await row.set({ cursor }).execute()
      }
    })
    for (const [id, cursor] of cursors) {
      this.#stored.set(id, cursor)
      if (this.#unstored.get(id) === cursor) this.#unstored.delete(id)
    }
  }

  /** Ends the deliveries of this process, because another controller goes on with them behind what is stored. */
  async suspend(context: Context): Promise<void> {
    this.#isServing = false
    for (const id of [...this.#running.keys()]) this.#stop(id)
    await this.flush(context).finally(() => this.#unstored.clear())
  }

  /** Sends one event that is only a test. @throws OutboundError if it was not delivered */
  async test(webhook: Webhook): Promise<void> {
    const body = JSON.stringify({ type: 'test', at: toIsoTime(this.#parts.clock.now()), webhook: webhook.name })
    await this.#post(webhook, `test-${newId()}`, body)
  }

  /** Describes how deliveries go; null in a process that delivers nothing. */
  describe({ id, isEnabled, isPaused }: Switches): DeliveryStatus | null {
    if (!this.#isServing) return null
    const delivery = this.#findFailing(id) ?? this.#running.get(id)?.delivery
    const { failure, deliveredAt } = delivery ?? {}
    return {
      state: isEnabled ? (isPaused ? 'paused' : (delivery?.state ?? 'delivering')) : 'disabled',
      failure: failure?.message ?? null,
      failingSince: failure ? toIsoTime(failure.since) : null,
      deliveredAt: deliveredAt === undefined ? null : toIsoTime(deliveredAt),
    }
  }

  /** Ends all deliveries, and begins no other. What was delivered can still be stored. */
  close(): void {
    this.#isClosed = true
    for (const id of [...this.#running.keys()]) this.#stop(id)
    this.#parts.others?.close()
    this.#parts.outbound.close()
  }

  #findFailing(id: string): WebhookDelivery | undefined {
    const { others } = this.#parts
    const delivery = this.#running.get(id)?.delivery
    return delivery?.failure || !others ? delivery : others.#findFailing(id)
  }

  #stop(id: string): void {
    this.#isOutdated = true
    this.#running.get(id)?.delivery.stop()
    this.#running.delete(id)
  }

  #start(context: Context, webhook: Webhook): void {
    const { id, name, ownerId, cursor } = webhook
    if (this.#running.has(id)) return
    const selection = { types: this.#selectTypes(webhook) }
    // The others are begun without any type, too: the cursors that they store tell a later process that it has missed events.
    if (this.#parts.delivered === 'observed' && selection.types?.length === 0) return
    const isCurrent = () => this.#running.get(id)?.delivery === delivery
    const delivery = new WebhookDelivery({
      clock: this.#parts.clock,
      send: ({ eventId, data }) => this.#post(webhook, eventId, data),
      watch: async (place) => {
        const rights = await this.#findOwnerRights(ownerId)
        if (!rights || !isCurrent()) return undefined
        const findRights = () => (isCurrent() ? rights : undefined)
        const right: WatcherRight = { ownerId: null, findRights, noteActivity() {} }
        return this.#parts.events.watch(right, selection, place, objectForm)
      },
      deliveredTo: (place) => {
        if (isCurrent()) this.#unstored.set(id, place)
      },
      failed: (err) =>
        this.#parts.log.warn({ err, webhook: id }, 'an event was not delivered to a webhook, and is sent again'),
      pause: (failure) => this.#pause(context, id, failure),
    })
    this.#running.set(id, { delivery, ownerId })
    const unstored = this.#unstored.get(id)
    if (unstored === undefined) this.#stored.set(id, cursor)
    delivery.run(unstored ?? cursor).catch((error: unknown) => {
      this.#parts.log.error({ err: error, webhook: name }, 'events cannot be sent to a webhook')
      if (isCurrent()) this.#stop(id)
    })
  }

  /** The types that are delivered to a webhook; undefined for all. */
  #selectTypes({ types }: Webhook): readonly EventType[] | undefined {
    const { delivered } = this.#parts
    const selected = types.length > 0 ? (types as readonly EventType[]) : undefined
    if (delivered === 'all') return selected
    return (selected ?? eventTypes).filter((type) => isObserved.has(type) === (delivered === 'observed'))
  }

  /**
   * The rights of the one that changed a webhook last; undefined if it may watch nothing now. A change of what this reads of the
   * identity begins the delivery anew.
   */
  async #findOwnerRights(ownerId: string | null): Promise<Rights | undefined> {
    if (ownerId === null) return Rights.administrator
    const owner = await find({ db: this.#parts.db }, identities, ownerId)
    if (!owner || isDisabled(owner, this.#parts.clock.now())) return undefined
    const rights = findRights(owner)
    return rights.readsAnything ? rights : undefined
  }

  /** Sends a body, signed. @throws OutboundError if it was not delivered */
  async #post({ id, address, encryptedSecret }: Webhook, eventId: string, body: string): Promise<void> {
    const { cipher, clock, outbound } = this.#parts
    const secret = cipher.decrypt(encryptedSecret, toSecretPlace(id))
    const timestamp = Math.floor(clock.now() / 1_000)
    await outbound.postJson(address, body, signDelivery(secret, { id: eventId, timestamp, body }))
  }

  async #pause(context: Context, id: string, failure: DeliveryFailure): Promise<void> {
    await context.write(async (tx) => {
      const before = await find(tx, webhooks, id)
      if (!before) return
      const pausedAt = tx.clock.now()
      await tx.db.updateTable('webhooks').where('id', '=', id).set({ pausedAt }).execute()
      const change = { operation: 'update', audit: 'values', resource: webhooks.plural, id, at: pausedAt } as const
      tx.record({ ...change, before, after: { ...before, pausedAt } })
    })
    this.#parts.log.warn({ webhook: id, reason: failure.message }, 'a webhook is paused, because it failed for a day')
  }
}

/** Whether a change concerns what an identity may watch. A sign-in may change only what is known of the client's software. */
function changesRights({ before, after }: ChangeOf<'identities'>): boolean {
  return !before || !after || !isDeepStrictEqual(pickRights(before), pickRights(after))
}

function pickRights({ isAdmin, permissions, disabledAt, disabledUntil }: RecordOf<'identities'>) {
  return { isAdmin, permissions, disabledAt, disabledUntil }
}
