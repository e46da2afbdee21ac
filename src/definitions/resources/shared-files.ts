// The keys and certificates that all controllers of a network have in their directories.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const sharedFiles = defineResource({
  name: 'shared-file',
  plural: 'shared-files',
  summary: 'A file that all controllers of the network have: a key, or certificates.',
  fields: {
    name: f.text({ access: 'internal', unique: true }),
    sealedContent: f.text({ access: 'internal', secret: true }),
  },
  // The controllers make and delete them.
  verbs: [],
  isConfidential: true,
  audit: 'none',
  columns: ['id', 'createdAt'],
  example: { create: {}, filter: 'id = "…"' },
})
