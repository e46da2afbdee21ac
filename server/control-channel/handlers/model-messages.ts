// Messages by which routers follow the data model.
import { ContentType } from '../content-types.ts'
import { SubscribeToDataModelRequestSchema } from '../messages/edge_pb.ts'
import { MalformedBodyError, type MessageHandlers, withBody } from './message-handler.ts'

/** It is repeated with every message of the model. */
const MAX_SUBSCRIPTION_ID_LENGTH = 256

export const modelHandlers: MessageHandlers = [
  [
    ContentType.SUBSCRIBE_TO_DATA_MODEL,
    withBody(SubscribeToDataModelRequestSchema, ({ controller, router }, request) => {
      const { subscriptionId, timelineId, currentIndex, renew } = request
      if (subscriptionId.length > MAX_SUBSCRIPTION_ID_LENGTH)
        throw new MalformedBodyError('the name of a subscription is too long')
      // Routers of release 1 are not told that there is a model.
      if (!router.hello.hasDataModel) return
      controller.routers.model.subscribe(router, {
        id: subscriptionId === '' ? undefined : subscriptionId,
        timeline: timelineId,
        index: Number(currentIndex),
        isRenewal: renew,
      })
    }),
  ],
]
