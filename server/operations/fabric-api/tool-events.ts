// Events in the form in which OpenZiti's tools read them, as far as they have a name for them.
import { type EventType, GAP } from '../../../src/definitions/resources/event-types.ts'
import type { EventMessage, MessageForm } from '../../../src/maintenance/events/event-message.ts'
import { ContentType } from '../../control-channel/content-types.ts'
import { encodeText } from '../../control-channel/header-values.ts'
import { encodeMessage } from '../../control-channel/message.ts'

/** A tool has no cursor to go on from, so that the events of one large change must find room. */
const MAX_UNSENT_EVENTS = 500

/** The header with the type of an event. */
const EVENT_TYPE_HEADER = 10

/** The types that a tool may subscribe to, with those of the events that they stand for. Of some this controller has no events. */
const TYPES = {
  apiSession: ['api-session-begun', 'api-session-ended'],
  authentication: ['sign-in', 'sign-in-refused'],
  circuit: ['circuit-begun', 'circuit-failed', 'circuit-ended'],
  entityChange: ['record-created', 'record-updated', 'record-deleted'],
  link: ['link-up', 'link-down'],
  router: ['router-online', 'router-offline'],
  session: ['session-begun', 'session-ended'],
  ...{
    alert: [],
    cluster: [],
    connect: [],
    entityCount: [],
    metrics: [],
    sdk: [],
    service: [],
    terminator: [],
    usage: [],
  },
} as const satisfies Readonly<Record<string, readonly EventType[]>>

export const TOOL_EVENT_TYPES: readonly string[] = Object.keys(TYPES)

/** The types of events that a subscription to a type of the tools selects; undefined for one that does not exist. */
export function findEventTypes(toolType: unknown): readonly EventType[] | undefined {
  return typeof toolType === 'string' && Object.hasOwn(TYPES, toolType)
    ? TYPES[toolType as keyof typeof TYPES]
    : undefined
}

/** In place of a message that only keeps the connection open. */
export const KEEP_ALIVE = Buffer.alloc(0)

/** Each message is rendered once for all tools. */
const rendered = new WeakMap<EventMessage, Buffer>()

/** @param sourceId the id of this controller */
export function toolForm(sourceId: string): MessageForm {
  return {
    isOfObjects: true,
    maxUnsent: MAX_UNSENT_EVENTS,
    encode(message) {
      if (message.type === '') return KEEP_ALIVE
      if (message.type === GAP) return undefined
      const bytes = rendered.get(message) ?? renderMessage(message, sourceId)
      rendered.set(message, bytes)
      return bytes
    },
  }
}

function renderMessage({ type, data }: EventMessage, sourceId: string): Buffer {
  const event = JSON.parse(data) as EventData
  const [namespace] = Object.entries(TYPES).find(([, types]) => (types as readonly string[]).includes(type)) ?? ['']
  const head = { namespace, event_src_id: sourceId, timestamp: event.audit?.at ?? event.at }
  const body = { ...head, ...(event.audit ? renderAudited(type, event.audit) : renderOfNetwork(type, event)) }
  return encodeMessage({
    type: ContentType.STREAM_EVENTS_EVENT,
    // Only replies are found by their number.
    sequence: 0,
    headers: new Map([[EVENT_TYPE_HEADER, encodeText(namespace)]]),
    body: Buffer.from(JSON.stringify(body)),
  })
}

interface EventData extends Readonly<Record<string, unknown>> {
  readonly at?: string
  readonly id?: string
  readonly audit?: AuditData
}

interface AuditData {
  readonly id: number
  readonly at: string
  readonly actorKind: string
  readonly actorId: string | null
  readonly actorName: string | null
  readonly address: string | null
  readonly resource: string
  readonly entityId: string
  readonly before: unknown
  readonly after: unknown
  readonly method: string | null
  readonly reason: string | null
}

function renderAudited(type: string, audit: AuditData): object {
  const { actorId, address, method, reason } = audit
  if (type === 'sign-in' || type === 'sign-in-refused') {
    const isSuccess = type === 'sign-in'
    return {
      event_type: isSuccess ? 'success' : 'fail',
      type: method ?? '',
      identity_id: actorId ?? '',
      remote_address: address ?? '',
      success: isSuccess,
      reason: reason ?? '',
    }
  }
  return {
    eventId: String(audit.id),
    eventType: type.replace('record-', ''),
    entityType: toEntityType(audit.resource),
    entityId: audit.entityId,
    metadata: {
      author: { type: audit.actorKind, id: actorId ?? '', name: audit.actorName ?? '' },
      source: { remoteAddr: address ?? '' },
    },
    ...(audit.before === null ? {} : { initialState: audit.before }),
    ...(audit.after === null ? {} : { finalState: audit.after }),
  }
}

/** Their names of kinds of records: those of the tables are in camel case, and edge routers are routers. */
function toEntityType(resource: string): string {
  return resource === 'edge-routers'
    ? 'routers'
    : resource.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

function renderOfNetwork(type: string, event: EventData): object {
  const { id = '' } = event
  switch (type) {
    case 'router-online':
    case 'router-offline':
      return { event_type: type, router_id: id, router_online: type === 'router-online' }
    case 'link-up':
    case 'link-down': {
      const { sourceId, destinationId, protocol } = event
      const kind = type === 'link-up' ? 'routerLinkNew' : 'fault'
      return { event_type: kind, link_id: id, src_router_id: sourceId, dst_router_id: destinationId, protocol }
    }
    case 'api-session-begun':
    case 'api-session-ended': {
      const { identityId, ipAddress, isByOpenIdConnect } = event
      const kind = isByOpenIdConnect ? 'jwt' : 'legacy'
      return {
        event_type: toLifeCycle(type),
        id,
        type: kind,
        token: '',
        identity_id: identityId,
        ip_address: ipAddress,
      }
    }
    case 'session-begun':
    case 'session-ended': {
      const { sessionType, apiSessionId, identityId, serviceId } = event
      const ids = { api_session_id: apiSessionId, identity_id: identityId, service_id: serviceId }
      return { event_type: toLifeCycle(type), session_type: sessionType, provider: 'legacy', id, ...ids }
    }
    default:
      return renderCircuit(type, event)
  }
}

function renderCircuit(type: string, event: EventData): object {
  const { id = '', serviceId, identityId, hostId, terminatorId = '', routerIds, routerId, linkIds = [], cause } = event
  const nodes = routerIds ?? [routerId]
  return {
    version: 2,
    event_type: type === 'circuit-failed' ? 'failed' : toLifeCycle(type),
    circuit_id: id,
    client_id: identityId,
    service_id: serviceId,
    terminator_id: terminatorId,
    instance_id: '',
    path: { nodes, links: linkIds, ingress_id: '', egress_id: '' },
    link_count: (linkIds as readonly string[]).length,
    ...(cause === undefined ? {} : { failure_cause: cause }),
    tags: { clientId: identityId, serviceId, ...(hostId ? { hostId } : {}) },
  }
}

function toLifeCycle(type: string): 'created' | 'deleted' {
  return type.endsWith('-begun') ? 'created' : 'deleted'
}
