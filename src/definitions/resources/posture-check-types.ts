// The types of posture checks, and the operating systems that each applies to.
import { f } from '../schema/fields.ts'
import { listOf, requiredObject, text, typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import { operatingSystemTypes } from './posture-checks.ts'

interface OperatingSystem {
  readonly type: string
  readonly versions: readonly string[]
}

const systems = {
  Android: ['10', '11', '9'],
  Linux: ['4.14', '4.19', '5.4', '5.9'],
  Windows: ['10', '2000', '7', '8', 'Vista'],
  iOS: ['11', '12'],
  macOS: ['10.15', '11.0'],
} as const

const on = (...types: (keyof typeof systems)[]): OperatingSystem[] =>
  types.map((type) => ({ type, versions: systems[type] }))

export const postureCheckTypes = defineResource({
  name: 'posture-check-type',
  plural: 'posture-check-types',
  summary: 'A kind of posture check, with the operating systems it works on.',
  fields: {
    name: f.name(),
    operatingSystems: f.json(
      typed<OperatingSystem[]>(
        listOf(requiredObject({ type: { ...text, enum: operatingSystemTypes }, versions: listOf(text) })),
      ),
      { access: 'read' },
    ),
    version: f.text({ access: 'read', default: '1' }),
  },
  verbs: ['list', 'detail'],
  builtIn: [
    {
      id: 'OS',
      name: 'Operating System Check',
      operatingSystems: on('Android', 'Linux', 'Windows', 'iOS', 'macOS'),
    },
    { id: 'PROCESS', name: 'Process Check', operatingSystems: on('Linux', 'Windows', 'macOS') },
    {
      id: 'PROCESS_MULTI',
      name: 'Process Multi Check',
      operatingSystems: ['Linux', 'Windows', 'macOS'].map((type) => ({ type, versions: [] })),
    },
    { id: 'DOMAIN', name: 'Windows Domain Check', operatingSystems: on('Windows') },
    { id: 'MAC', name: 'MAC Address Check', operatingSystems: on('Android', 'Linux', 'Windows', 'macOS') },
    { id: 'MFA', name: 'Multi-Factor Authentication Check', operatingSystems: [] },
  ],
  columns: ['id', 'name'],
  example: { create: {}, filter: 'name contains "Process"' },
})
