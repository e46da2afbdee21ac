// The settings that administrators make for links. The links themselves are reported by routers, and only in memory.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

/** The range of what an administrator sets. */
export const STATIC_COST = { min: 0, max: 1_000_000 } as const

export const linkSettings = defineResource({
  name: 'link-setting',
  plural: 'link-settings',
  summary:
    'What an administrator set for the links between two routers at one address. It holds although a link gets another id when its router starts again.',
  fields: {
    sourceId: f.reference('routers', { access: 'internal', onDelete: 'cascade' }),
    destinationId: f.reference('routers', { access: 'internal', onDelete: 'cascade' }),
    protocol: f.text({ access: 'internal' }),
    dialAddress: f.text({ access: 'internal' }),
    isDown: f.bool({ access: 'read', summary: 'Whether no path may use the link.' }),
    staticCost: f.int({ ...STATIC_COST, access: 'read', summary: 'What the link costs besides its latency.' }),
  },
  // They are read and changed as members of links.
  verbs: [],
  columns: ['id', 'isDown', 'staticCost'],
  example: { create: {}, filter: 'isDown = true' },
})
