// The test of a webhook: one event that its receiver can ignore.
import { OutboundError } from '../../../src/client/outbound-client.ts'
import { webhooks } from '../../../src/definitions/resources/webhooks.ts'
import { flag, orNull, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { get } from '../../../src/storage/entities/entities.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

export const webhookOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'testWebhook',
    apis: ['management'],
    topic: webhooks.plural,
    isOwn: true,
    method: 'POST',
    path: '/controller/webhooks/:id/test',
    summary: 'Sends an event of the type test to a webhook once, and says whether its receiver has accepted it.',
    access: { permission: `${webhooks.name}.update`, grantedTo: 'administrator' },
    returns: {
      kind: 'data',
      schema: requiredObject({
        isDelivered: flag,
        failure: { ...orNull(text), description: 'Why it was not delivered.' },
      }),
    },
    // The receiver may take as long as the setting webhooks.timeout allows.
    hasNoTimeout: true,
    async run({ controller, context, params: { id = '' } }) {
      const webhook = await get(context, webhooks, id)
      try {
        await controller.webhooks.test(webhook)
        return dataResponse({ isDelivered: true, failure: null })
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error
        controller.log.info({ err: error, webhook: id }, 'the test of a webhook was not delivered')
        return dataResponse({ isDelivered: false, failure: error.message })
      }
    },
  }),
]
