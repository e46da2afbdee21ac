// The types of events, as watchers select them.

/** The types of what a controller observes at its own routers. Of several controllers, no other one has the same events. */
export const observedEventTypes = [
  'router-online',
  'router-offline',
  'link-up',
  'link-down',
  'circuit-begun',
  'circuit-failed',
  'circuit-ended',
] as const

/** The types of what happens in the network without being audited. Such events are kept for a short time only. */
export const networkEventTypes = [
  ...observedEventTypes,
  'api-session-begun',
  'api-session-ended',
  'session-begun',
  'session-ended',
  'posture-passed',
  'posture-failed',
  'certificate-expiring',
  'certificate-expired',
] as const
export type NetworkEventType = (typeof networkEventTypes)[number]

/** The types of what the audit records. */
const auditEventTypes = [
  'record-created',
  'record-updated',
  'record-deleted',
  'sign-in',
  'sign-in-refused',
  'audit-cut',
  'clock-jump',
] as const
export type AuditEventType = (typeof auditEventTypes)[number]

/** The types that a watcher can select. */
export const eventTypes = [...auditEventTypes, ...networkEventTypes] as const
export type EventType = (typeof eventTypes)[number]

/** Tells a watcher what it may have missed. Every watcher gets it, whatever it selects. */
export const GAP = 'gap'

/** The two sources of events, as a gap names them. */
export type EventSource = 'audit' | 'network'
