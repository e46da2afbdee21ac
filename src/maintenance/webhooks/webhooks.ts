// The parts of webhooks, composed: their records, the deliveries, and the client that sends them.
import { OutboundClient } from '../../client/outbound-client.ts'
import { readAuthoritiesFile } from '../../settings/authorities-file.ts'
import type { Config } from '../../settings/config.ts'
import { WebhookBehavior } from './webhook-behavior.ts'
import { WebhookDeliveries, type WebhookDeliveriesParts } from './webhook-deliveries.ts'

export interface Webhooks {
  readonly behavior: WebhookBehavior
  readonly deliveries: WebhookDeliveries
}

/** @throws ConfigError if `webhooks.caFile` cannot be read */
export function createWebhooks(config: Config, parts: Omit<WebhookDeliveriesParts, 'outbound'>): Webhooks {
  const outbound = new OutboundClient({
    settingPrefix: 'webhooks',
    allowHttp: config['webhooks.allowHttp'],
    allowPrivate: config['webhooks.allowPrivate'],
    authorities: readAuthoritiesFile(config, 'webhooks.caFile'),
    timeoutMs: config['webhooks.timeout'],
  })
  const deliveries = new WebhookDeliveries({ ...parts, outbound })
  return { deliveries, behavior: new WebhookBehavior({ cipher: parts.cipher, deliveries, outbound }) }
}
