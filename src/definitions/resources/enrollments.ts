// The one-time ways into the network: a token that becomes a certificate or a password.
import { f } from '../schema/fields.ts'
import { newUsername } from './authenticators.ts'
import { defineResource } from './define.ts'

export type EnrollmentMethod = 'ott' | 'ottca' | 'updb' | 'erott' | 'trott'

const ofMethod = {
  required: 'create',
  access: 'create',
  summary:
    'ott: for a certificate of this controller. ottca: with a certificate of another authority. updb: for a password.',
  // Methods of routers, whose enrollments are made along with the router.
  systemChoices: ['erott', 'trott'],
} as const
const ofRouter = { access: 'read', nullable: true, unique: true, omitNull: true, onDelete: 'cascade' } as const

/** Among the members by which a new record asks for its enrollments. */
export const enrollmentExpiry = {
  expiresAt: f.time({
    nullable: true,
    acceptsNull: true,
    summary: 'The time until which the token is valid. Default: as the settings state.',
  }),
}

export const enrollments = defineResource({
  name: 'enrollment',
  plural: 'enrollments',
  summary: 'A one-time token by which an identity, or a router, gets its first credential.',
  fields: {
    identityId: f.reference('identities', {
      as: 'identity',
      withUrlName: true,
      required: 'create',
      access: 'create',
      filter: 'identity',
      nullable: true,
      omitNull: true,
      onDelete: 'cascade',
      summary: 'Who enrolls.',
    }),
    edgeRouterId: f.reference('edge-routers', { ...ofRouter, as: 'edgeRouter', filter: 'edgeRouter' }),
    transitRouterId: f.reference('routers', { ...ofRouter, as: 'transitRouter', filter: 'transitRouter' }),
    method: f.choice<EnrollmentMethod, typeof ofMethod>(['ott', 'ottca', 'updb'], ofMethod),
    expiresAt: f.time({ required: 'create', access: 'create', summary: 'Until when the token can be used.' }),
    username: f.text({
      access: 'create',
      nullable: true,
      acceptsNull: true,
      compatibleEmpty: 'absent',
      ...newUsername,
      summary: 'Of the method updb: the username that gets a password.',
    }),
    caId: f.reference('cas', {
      as: 'ca',
      access: 'create',
      nullable: true,
      acceptsNull: true,
      filter: true,
      onDelete: 'cascade',
      summary: 'Of the method ottca: the authority of the certificate.',
    }),
    // Set for the bootstrap token, whose bearer also chooses the username.
    isBootstrap: f.bool({ access: 'internal' }),
    token: f.text({ access: 'read', unique: true, masked: true, format: 'uuid' }),
  },
  derived: { jwt: { type: 'string' } },
  verbs: ['list', 'create', 'detail', 'delete'],
  isConfidential: true,
  wayInOf: 'identityId',
  columns: ['id', 'method', 'identityId', 'expiresAt'],
  example: {
    create: { identityId: 'laptop', method: 'ott', expiresAt: '2099-01-01T00:00:00Z' },
    filter: 'createdAt > datetime(2026-01-31T12:00:00Z)',
  },
})
