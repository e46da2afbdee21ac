// The key under which clients keep their TLS sessions as tickets.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const ticketKeys = defineResource({
  name: 'ticket-key',
  plural: 'ticket-keys',
  summary: 'The key of TLS tickets, by which clients resume sessions.',
  fields: {
    encryptedKey: f.text({ access: 'internal', secret: true, isEncrypted: true }),
  },
  // The controller makes and deletes them.
  verbs: [],
  isConfidential: true,
  audit: 'none',
  columns: ['id', 'createdAt'],
  example: { create: {}, filter: 'id = "…"' },
})
