// The one-time ways into the network: a token that becomes a certificate or a password.
import { f } from '../schema/fields.ts'
import { usernameLength } from './authenticators.ts'
import { defineResource } from './define.ts'

export const enrollments = defineResource({
  name: 'enrollment',
  plural: 'enrollments',
  summary: 'A one-time token by which an identity gets a credential.',
  fields: {
    identityId: f.reference('identities', {
      as: 'identity',
      withUrlName: true,
      required: 'create',
      access: 'create',
      filter: 'identity',
      onDelete: 'cascade',
      summary: 'Who enrolls.',
    }),
    method: f.choice(['ott', 'ottca', 'updb'], {
      required: 'create',
      access: 'create',
      summary:
        'ott: for a certificate of this controller. ottca: with a certificate of another authority. updb: for a password.',
    }),
    expiresAt: f.time({ required: 'create', access: 'create', summary: 'Until when the token can be used.' }),
    username: f.text({
      access: 'create',
      nullable: true,
      ...usernameLength,
      summary: 'Of the method updb: the username that gets a password.',
    }),
    caId: f.text({
      access: 'create',
      nullable: true,
      omitNull: true,
      filter: true,
      summary: 'Of the method ottca: the other authority.',
    }),
    token: f.text({ access: 'read', unique: true, masked: true }),
  },
  derived: { jwt: { type: 'string' }, ca: { type: ['object', 'null'] } },
  derive: (context, rows) => context.controller.deriveEnrollments(context, rows),
  rules: {
    prepare: (context, change, inputs) => context.controller.enrollmentRules.prepare(context, change, inputs),
    check: (tx, next, previous, prepared) => tx.controller.enrollmentRules.check(tx, next, previous, prepared),
  },
  verbs: ['list', 'create', 'detail', 'delete'],
  columns: ['id', 'method', 'identityId', 'expiresAt'],
  example: {
    create: { identityId: 'laptop', method: 'ott', expiresAt: '2099-01-01T00:00:00Z' },
    filter: 'identity = "…"',
  },
})
