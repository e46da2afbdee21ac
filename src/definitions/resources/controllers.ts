// The controllers of the network: this one, and any others that share its database.
import { f } from '../schema/fields.ts'
import { typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

/** By API: its addresses. */
export type ApiAddresses = Readonly<Record<string, readonly { readonly url: string; readonly version: string }[]>>

const apiAddresses = typed<ApiAddresses>({
  type: 'object',
  additionalProperties: {
    type: 'array',
    items: { type: 'object', properties: { url: { type: 'string' }, version: { type: 'string' } } },
  },
})

export const controllers = defineResource({
  name: 'controller',
  plural: 'controllers',
  summary: 'A controller of the network: its addresses and its certificate.',
  fields: {
    name: f.text({ access: 'read', filter: true }),
    ctrlAddress: f.text({ access: 'read', nullable: true, filter: true }),
    // The addresses of all APIs that it serves, in the order in which it advertises them.
    servedAddresses: f.json(apiAddresses, { access: 'internal' }),
    certPem: f.text({ access: 'read', filter: true }),
    fingerprint: f.text({ access: 'read', filter: true }),
    // Its name in a cluster: by it a controller finds its own record again.
    node: f.text({ access: 'internal', nullable: true, unique: true }),
    // The server's key outlives its certificates: by it a controller that is alone finds its own record again.
    publicKeyPrint: f.text({ access: 'internal' }),
    lastJoinedAt: f.time({ access: 'read', default: 0, filter: true }),
  },
  computedFrom: ['node'],
  computed: { isOnline: { type: 'boolean', 'x-offline': null }, apiAddresses },
  verbs: ['list'],
  columns: ['id', 'name', 'fingerprint', 'lastJoinedAt'],
  example: { create: {}, filter: 'name contains "example"' },
})
