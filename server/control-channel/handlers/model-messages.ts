// Messages by which routers follow the data model.
import { ContentType } from '../content-types.ts'
import { SubscribeToDataModelRequestSchema } from '../messages/edge_pb.ts'
import { MalformedBodyError, type MessageHandlers, withBody } from './message-handler.ts'

/** It is repeated with every message of the model. */
const MAX_SUBSCRIPTION_ID_LENGTH = 256

export const modelHandlers: MessageHandlers = [
  [
    ContentType.SUBSCRIBE_TO_DATA_MODEL,
    withBody(SubscribeToDataModelRequestSchema, async ({ controller, router }, request) => {
      const { subscriptionId, timelineId, currentIndex, renew } = request
      if (subscriptionId.length > MAX_SUBSCRIPTION_ID_LENGTH)
        throw new MalformedBodyError('the name of a subscription is too long')
      // Routers of release 1 are not told that there is a model.
      if (!router.hello.hasDataModel) return
      const { cluster, routers } = controller
      const index = Number(currentIndex)
      // It may have followed another controller further than this one has followed the log, and must not be sent an older state.
      if (index > routers.model.index) await cluster?.catchUp().catch(() => undefined)
      const id = subscriptionId === '' ? undefined : subscriptionId
      routers.model.subscribe(router, { id, timeline: timelineId, index, isRenewal: renew })
    }),
  ],
]
