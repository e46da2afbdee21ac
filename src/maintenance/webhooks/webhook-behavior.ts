// The rules of webhooks: where events may be sent, by whose right, and from where on.
import type { OutboundClient } from '../../client/outbound-client.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { webhooks } from '../../definitions/resources/webhooks.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import { findNewestAuditRecord } from '../../storage/audit/audit-pages.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import type { SecretCipher } from '../../storage/secrets/secret-cipher.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { AUDIT_BEGIN, formatCursor, NO_RUN, toAuditPlace } from '../events/cursor.ts'
import type { WebhookDeliveries } from './webhook-deliveries.ts'
import { findSecretObjection, toSecretPlace, type Webhook } from './webhook-signature.ts'

/** Each follows the events by itself. */
const MAX_WEBHOOKS = 100

interface WebhookInputs {
  readonly secret?: string
}

interface PreparedWebhook {
  readonly encryptedSecret?: string
}

interface WebhookBehaviorParts {
  readonly cipher: SecretCipher
  readonly deliveries: WebhookDeliveries
  readonly outbound: OutboundClient
}

export class WebhookBehavior implements Behavior<typeof webhooks, PreparedWebhook> {
  readonly #parts: WebhookBehaviorParts

  constructor(parts: WebhookBehaviorParts) {
    this.#parts = parts
  }

  async prepareCreate(_context: Context, { next }: Draft<typeof webhooks>, inputs: WebhookInputs) {
    return this.#encrypt(next.id, inputs)
  }

  async prepareUpdate(_context: Context, { next }: Draft<typeof webhooks>, inputs: WebhookInputs) {
    return this.#encrypt(next.id, inputs)
  }

  /** @throws COULD_NOT_VALIDATE if nothing may be sent to the address, or there are too many */
  async check(
    tx: WriteContext,
    next: Webhook,
    previous: Webhook | undefined,
    prepared: PreparedWebhook | undefined,
  ): Promise<void> {
    if (next.address !== previous?.address) {
      const objection = this.#parts.outbound.findObjection(next.address)
      if (objection) throw invalidError('address', objection, next.address)
    }
    if (prepared?.encryptedSecret !== undefined) next.encryptedSecret = prepared.encryptedSecret
    if (!previous) {
      await requireCapacity(tx)
      const newest = await findNewestAuditRecord(tx.db)
      next.cursor = formatCursor({ ...(newest ? toAuditPlace(newest) : AUDIT_BEGIN), run: NO_RUN, sequence: 0 })
    }
    const { caller } = tx
    if (caller.kind === 'identity') next.ownerId = caller.identityId
    else if (caller.kind === 'local-operator') next.ownerId = null
    next.pausedAt = null
  }

  computeFields(_context: ReadContext, rows: readonly ComputedInput[]): Record<string, unknown>[] {
    return rows.map(({ id, enabled, pausedAt }) => ({
      delivery: this.#parts.deliveries.describe({ id, isEnabled: enabled === 1, isPaused: pausedAt !== null }),
    }))
  }

  /** @throws COULD_NOT_VALIDATE if deliveries cannot be signed by the secret */
  #encrypt(id: string, { secret }: WebhookInputs): PreparedWebhook {
    if (secret === undefined) return {}
    const objection = findSecretObjection(secret)
    if (objection) throw invalidError('secret', objection)
    return { encryptedSecret: this.#parts.cipher.encrypt(secret, toSecretPlace(id)) }
  }
}

async function requireCapacity({ db }: WriteContext): Promise<void> {
  const { count } = await db
    .selectFrom('webhooks')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count >= MAX_WEBHOOKS) throw errors.COULD_NOT_VALIDATE({ message: `there may be ${MAX_WEBHOOKS} webhooks` })
}
