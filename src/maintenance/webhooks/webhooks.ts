// The parts of webhooks, composed: their records, the deliveries, and the client that sends them.
import { OutboundClient } from '../../client/outbound-client.ts'
import { readAuthoritiesFile } from '../../settings/authorities-file.ts'
import type { Config } from '../../settings/settings.ts'
import { WebhookBehavior } from './webhook-behavior.ts'
import { WebhookDeliveries, type WebhookDeliveriesParts } from './webhook-deliveries.ts'

export interface Webhooks {
  readonly behavior: WebhookBehavior
  readonly deliveries: WebhookDeliveries
  /** Of one of several controllers: the deliveries of what it alone observes. */
  readonly observed: WebhookDeliveries | undefined
}

/**
 * @param isOneOfSeveral whether other controllers deliver events, too
 * @throws ConfigError if `webhooks.caFile` cannot be read
 */
export function createWebhooks(
  config: Config,
  parts: Omit<WebhookDeliveriesParts, 'outbound' | 'delivered' | 'others'>,
  isOneOfSeveral: boolean,
): Webhooks {
  const outbound = new OutboundClient({
    settingPrefix: 'webhooks',
    allowHttp: config['webhooks.allowHttp'],
    allowPrivate: config['webhooks.allowPrivate'],
    authorities: readAuthoritiesFile(config, 'webhooks.caFile'),
    timeoutMs: config['webhooks.timeout'],
  })
  const observed = isOneOfSeveral ? new WebhookDeliveries({ ...parts, outbound, delivered: 'observed' }) : undefined
  const delivered = isOneOfSeveral ? 'shared' : 'all'
  const deliveries = new WebhookDeliveries({ ...parts, outbound, delivered, others: observed })
  return { deliveries, observed, behavior: new WebhookBehavior({ cipher: parts.cipher, deliveries, outbound }) }
}
