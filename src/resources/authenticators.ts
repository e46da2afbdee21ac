// How an identity proves who it is: a password or a certificate.
import { f } from '../schema/fields.ts'
import { typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

export const authenticators = defineResource({
  name: 'authenticator',
  plural: 'authenticators',
  summary: 'A credential of an identity: a username with a password, or a certificate.',
  fields: {
    identityId: f.reference('identities', {
      as: 'identity',
      required: 'create',
      access: 'create',
      filter: 'identity',
      onDelete: 'cascade',
    }),
    method: f.choice(['cert', 'updb'], { required: 'create', access: 'create', filter: true }),
    username: f.text({ nullable: true, omitNull: true, minLength: 4, maxLength: 100, filter: 'updbUsername' }),
    // Usernames are unique regardless of case; this is the form that is compared.
    foldedUsername: f.text({ access: 'internal', nullable: true, unique: true, input: 'username' }),
    passwordHash: f.text({ access: 'internal', nullable: true, secret: true }),
    certPem: f.text({ access: 'read', nullable: true, omitNull: true, filter: true }),
    fingerprint: f.text({ access: 'read', nullable: true, omitNull: true, filter: 'certFingerprint' }),
    fingerprint256: f.text({ access: 'internal', nullable: true, unique: true }),
    publicKeyPrint: f.text({ access: 'internal', nullable: true, filter: true }),
    isIssuedByNetwork: f.bool({ access: 'read', filter: true }),
    isExtendRequested: f.bool({ access: 'read', filter: true }),
    isKeyRollRequested: f.bool({ access: 'read', filter: true }),
    extendRequestedAt: f.time({ access: 'read', nullable: true, omitNull: true, filter: true }),
    lastAuthResolvedToRoot: f.bool({ access: 'read', filter: true }),
    extendLog: f.json(typed<unknown[]>({ type: 'array', items: { type: 'object' } }), {
      access: 'read',
      nullable: true,
    }),
  },
  links: [{ key: 'identities', to: { resource: 'identities', field: 'identityId' } }],
  verbs: [],
  columns: ['id', 'method', 'identityId', 'username', 'fingerprint'],
  example: { create: {}, filter: 'method = "cert"' },
})
