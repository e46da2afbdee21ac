// `controller webhook test`: sends one event to a webhook, and says whether its receiver has accepted it.
import { resolvePathId } from '../client/names.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeControls } from '../terminal/text.ts'

interface WebhookTest {
  readonly isDelivered: boolean
  readonly failure: string | null
}

export const webhookTest = defineConnectedCommand({
  summary: 'Sends an event of the type test to a webhook once, and says whether its receiver has accepted it.',
  args: { webhook: requiredArgument({ description: 'Name or id of the webhook.' }) },
  example: 'alerts',
  async run({ client, args: { webhook = '' }, print }) {
    const id = await resolvePathId(client, 'webhooks', webhook)
    const { data } = await client.call('POST', `/controller/webhooks/${id}/test`)
    const { isDelivered, failure } = data as WebhookTest
    const sentence = isDelivered
      ? `${webhook}: the receiver has accepted the event`
      : `${webhook}: the event was not delivered: ${failure}`
    await print({ kind: 'done', sentence: escapeControls(sentence), facts: { webhook: id, isDelivered, failure } })
    return isDelivered ? EXIT.done : EXIT.denied
  },
})
