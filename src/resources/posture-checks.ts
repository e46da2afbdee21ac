// What a machine must prove about itself before a service policy lets its identity dial or bind.
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

export const operatingSystemTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const

export const postureChecks = defineResource({
  name: 'posture-check',
  plural: 'posture-checks',
  summary: 'A condition that a machine must meet before a policy admits its identity.',
  fields: {
    name: f.name(),
    roleAttributes: f.roleAttributes({ summary: 'Attributes by which policies find this check.' }),
    version: f.int({ access: 'read', default: 1 }),
  },
  variants: {
    DOMAIN: { domains: f.strings({ required: true, minItems: 1 }) },
    MFA: {
      timeoutSeconds: f.int({ default: -1, summary: 'How long a proof stays good; -1 is as long as the session.' }),
      promptOnWake: f.bool({ filter: true }),
      promptOnUnlock: f.bool({ filter: true }),
      ignoreLegacyEndpoints: f.bool(),
    },
  },
  verbs: [],
  columns: ['id', 'name', 'typeId', 'roleAttributes'],
  example: {
    create: { name: 'company-domain', typeId: 'DOMAIN', domains: ['corp.example.com'] },
    filter: 'typeId = "MFA"',
  },
})
