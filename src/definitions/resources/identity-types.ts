// The words an identity can be described by; only `Router` means something to the controller.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const identityTypeIds = ['User', 'Device', 'Service', 'Router', 'Default'] as const

export const identityTypes = defineResource({
  name: 'identity-type',
  plural: 'identity-types',
  summary: 'What an identity stands for.',
  fields: { name: f.name() },
  verbs: ['list', 'detail'],
  builtIn: identityTypeIds.map((id) => ({ id, name: id })),
  columns: ['id', 'name'],
  example: { create: {}, filter: 'name = "Default"' },
})
