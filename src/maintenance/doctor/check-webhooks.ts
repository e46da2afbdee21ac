// Checks that events reach the receivers of webhooks.
import { toIsoTime } from '../../foundation/clock.ts'
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { WebhookDeliveries } from '../webhooks/webhook-deliveries.ts'
import type { Diagnosis } from './diagnosis.ts'

/** The webhooks that are paused, that fail, or whose owner may not receive events any more. */
export async function checkWebhooks({ db }: Context, deliveries: WebhookDeliveries): Promise<Diagnosis[]> {
  const rows = await db
    .selectFrom('webhooks')
    .select(['id', 'name', 'pausedAt'])
    .where('enabled', '=', 1)
    .orderBy('name')
    .execute()
  return rows.flatMap(({ id, name, pausedAt }): Diagnosis[] => {
    const delivery = deliveries.describe({ id, isEnabled: true, isPaused: pausedAt !== null })
    const update = `controller webhook update ${quoteShellWord(name)} --enabled`
    const diagnose = (message: string, remedy: string) => [
      { check: 'webhooks', subject: `webhook ${name}`, message, remedy },
    ]
    if (pausedAt !== null)
      return diagnose(`it is paused since ${toIsoTime(pausedAt)}, because its receiver failed for a day`, update)
    if (delivery?.state === 'not-permitted')
      return diagnose('the identity that changed it last may not receive events any more', update)
    if (delivery?.state === 'failing')
      return diagnose(
        `its receiver has failed since ${delivery.failingSince}: ${delivery.failure}`,
        `controller webhook test ${quoteShellWord(name)}`,
      )
    return []
  })
}
