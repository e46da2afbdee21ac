// The signature of deliveries: that of the Standard Webhooks specification, for which receivers find libraries.
import { createHmac } from 'node:crypto'
import type { Entity } from '../../definitions/resources/define.ts'
import { webhooks } from '../../definitions/resources/webhooks.ts'

export type Webhook = Entity<typeof webhooks>

/** The place at which the secret of a webhook is stored. */
export function toSecretPlace(id: string) {
  return { resource: webhooks.plural, id, field: 'encryptedSecret' } as const
}

const BASE64_SECRET = 'whsec_'

interface SignedDelivery {
  /** The same for each attempt, by which a receiver knows what it has already. */
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly body: string
}

/** The headers of a delivery: its id, the time, and HMAC-SHA-256 over both and the body. */
export function signDelivery(secret: string, { id, timestamp, body }: SignedDelivery): Record<string, string> {
  const signature = createHmac('sha256', toKey(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` }
}

function toKey(secret: string): Buffer {
  return secret.startsWith(BASE64_SECRET)
    ? Buffer.from(secret.slice(BASE64_SECRET.length), 'base64')
    : Buffer.from(secret, 'utf8')
}
