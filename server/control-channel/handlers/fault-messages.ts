// Messages about what a router lost: an end of a circuit, a link, or the way on.
import { ContentType } from '../content-types.ts'
import { FaultSchema, FaultSubject } from '../messages/control_pb.ts'
import { type MessageHandlers, requireAtMost, withBody } from './message-handler.ts'

// A router may report all circuits that it carries; each id has some 35 characters.
const MAX_CIRCUITS = 100_000

/** The messages of routers about faults. */
export const faultHandlers: MessageHandlers = [
  [
    ContentType.FAULT,
    withBody(FaultSchema, ({ controller, router }, { subject, id, iteration }) => {
      const { links, reports } = controller.fabric
      switch (subject) {
        case FaultSubject.IngressFault:
          return reports.takeEnd(router, id, 'client')
        case FaultSubject.EgressFault:
          return reports.takeEnd(router, id, 'terminator')
        case FaultSubject.LinkFault:
        case FaultSubject.LinkDuplicate:
          return links.fail(router.id, id, iteration)
        case FaultSubject.ForwardFault:
        case FaultSubject.UnknownOwnerForwardFault: {
          const circuitIds = id.split(' ')
          requireAtMost(MAX_CIRCUITS, circuitIds, 'circuits')
          return reports.takeForwardFaults(router, circuitIds, subject === FaultSubject.ForwardFault)
        }
      }
    }),
  ],
]
