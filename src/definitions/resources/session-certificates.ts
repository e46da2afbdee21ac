// Certificates that are valid for one API session: clients present them to routers.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const sessionCertificates = defineResource({
  name: 'session-certificate',
  plural: 'session-certificates',
  summary: 'A client certificate that is valid for one API session only.',
  // Clients request them all the time, and they grant no more than the API session, whose sign-in is audited.
  audit: 'none',
  fields: {
    apiSessionId: f.reference('api-sessions', { access: 'internal', onDelete: 'cascade' }),
    subject: f.text({ access: 'read', filter: true }),
    fingerprint: f.text({ access: 'read', filter: true }),
    validFrom: f.time({ access: 'read', filter: true }),
    validTo: f.time({ access: 'read', filter: true }),
    certificate: f.text({ access: 'read' }),
  },
  // Each API session has its own, at `current-api-session/certificates`.
  verbs: [],
  columns: ['id', 'subject', 'fingerprint', 'validTo'],
  example: { create: {}, filter: 'validTo > datetime(2026-01-31T12:00:00Z)' },
})
