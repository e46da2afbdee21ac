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
const MIN_KEY_BYTES = 16
const MIN_VISIBLE_CHARACTERS = 16

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

/** Returns the reason for which deliveries cannot be signed by a secret; undefined if they can. */
export function findSecretObjection(secret: string): string | undefined {
  if (!secret.startsWith(BASE64_SECRET)) {
    const { length } = secret.match(/\S/gu) ?? []
    return length < MIN_VISIBLE_CHARACTERS
      ? `must have at least ${MIN_VISIBLE_CHARACTERS} characters that are not white space`
      : undefined
  }
  // The decoder skips what is not Base64, and the libraries of receivers reject it.
  const key = toKey(secret)
  const encoded = key.toString('base64')
  const isBase64 = [encoded, encoded.replace(/={1,2}$/, '')].includes(secret.slice(BASE64_SECRET.length))
  return isBase64 && key.length >= MIN_KEY_BYTES
    ? undefined
    : `must have the Base64 of at least ${MIN_KEY_BYTES} bytes after ${BASE64_SECRET}`
}

function toKey(secret: string): Buffer {
  return secret.startsWith(BASE64_SECRET)
    ? Buffer.from(secret.slice(BASE64_SECRET.length), 'base64')
    : Buffer.from(secret, 'utf8')
}
