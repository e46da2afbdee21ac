// The one-time ways into the network: a token that becomes a certificate or a password.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const enrollments = defineResource({
  name: 'enrollment',
  plural: 'enrollments',
  summary: 'A one-time token by which an identity gets its first credential.',
  fields: {
    identityId: f.reference('identities', {
      as: 'identity',
      required: 'create',
      access: 'create',
      filter: 'identity',
      onDelete: 'cascade',
    }),
    method: f.choice(['ott', 'ottca', 'updb'], { required: 'create', access: 'create' }),
    expiresAt: f.time({ required: 'create', access: 'create' }),
    username: f.text({ access: 'create', nullable: true }),
    token: f.text({ access: 'read', unique: true }),
  },
  derived: { jwt: { type: 'string' } },
  derive: (context, rows) => context.controller.deriveEnrollments(context, rows),
  verbs: [],
  columns: ['id', 'method', 'identityId', 'expiresAt'],
  example: { create: {}, filter: 'identity = "…"' },
})
