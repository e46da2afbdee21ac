// Messages about links: which a router dialed, and how fast they are.
import { ContentType } from '../content-types.ts'
import { RouterLinksSchema } from '../messages/control_pb.ts'
import { type MetricsMessage, MetricsMessageSchema } from '../messages/metrics_pb.ts'
import { MalformedBodyError, type MessageHandlers, requireAtMost, withBody } from './message-handler.ts'

// A router of the greatest network dials fewer.
const MAX_LINKS = 10_000

// Longer than any id, name of a protocol, or address of a router.
const MAX_TEXT_LENGTH = 500

const LATENCY_NAME = /^link\.(.+)\.latency$/

/** The messages of routers about links. */
export const linkHandlers: MessageHandlers = [
  [
    ContentType.ROUTER_LINKS,
    withBody(RouterLinksSchema, ({ controller, router }, { links, fullRefresh }) => {
      requireAtMost(MAX_LINKS, links, 'links')
      const reports = links.map(({ id, destRouterId, linkProtocol, dialAddress, iteration }) => {
        for (const text of [id, destRouterId, linkProtocol, dialAddress]) requireShortText(text)
        return { id, destinationId: destRouterId, protocol: linkProtocol, dialAddress, iteration }
      })
      controller.fabric.links.report(router, reports, fullRefresh)
    }),
  ],
  [
    ContentType.METRICS,
    withBody(MetricsMessageSchema, ({ controller, router }, metrics) => {
      for (const [linkId, latencyNs] of readLatencies(metrics))
        controller.fabric.links.recordLatency(router.id, linkId, latencyNs)
    }),
  ],
]

function requireShortText(text: string): void {
  if (text.length > MAX_TEXT_LENGTH) throw new MalformedBodyError('a link is described by a text that is too long')
}

/** Link → how long a message takes over it, with the time that it waits in the router before. */
function* readLatencies({ histograms }: MetricsMessage): Iterable<[linkId: string, latencyNs: number]> {
  for (const [name, { mean, count }] of Object.entries(histograms)) {
    const [, linkId] = LATENCY_NAME.exec(name) ?? []
    // Before the first measurement the mean is 0.
    if (linkId === undefined || count === 0n) continue
    yield [linkId, mean + (histograms[`link.${linkId}.queue_time`]?.mean ?? 0)]
  }
}
