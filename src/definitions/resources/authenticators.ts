// How an identity proves who it is: a password or a certificate.
import { f } from '../schema/fields.ts'
import { flag, listOf, requiredObject, text, time, typed } from '../schema/json-schema.ts'
import { COUNT } from '../schema/ranges.ts'
import { defineResource } from './define.ts'

/** The bounds of new usernames and of all passwords, in characters. The client API signs in none but such usernames. */
export const usernameLength = { minLength: 4, maxLength: 100 } as const
/** The form of a new username; existing ones are looked up in any form. */
export const newUsername = { ...usernameLength, mustBeVisible: true } as const
/** The bounds of every username: OpenZiti's controller let shorter and longer ones enroll, which sign in by OpenID Connect. */
export const anyUsernameLength = { minLength: 1, maxLength: 1000 } as const
export const passwordLength = { minLength: 5, maxLength: 100 } as const

/** Each time the certificate was replaced by a new one. */
const extension = requiredObject({ extendedAt: time, previousCert: text, newCert: text, isNewPrivateKey: flag })

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
      summary: 'Whose credential it is.',
    }),
    method: f.choice(['cert', 'updb'], {
      required: 'create',
      access: 'create',
      filter: true,
      summary: 'cert: a client certificate. updb: a username with a password.',
    }),
    username: f.text({
      required: 'replace',
      nullable: true,
      acceptsNull: 'patch',
      omitNull: true,
      ...newUsername,
      filter: 'updbUsername',
      summary: 'Of the method updb; unique in the network, regardless of case.',
    }),
    // The form in which usernames are compared.
    foldedUsername: f.text({ access: 'internal', nullable: true, unique: true, input: 'username' }),
    passwordHash: f.text({ access: 'internal', nullable: true, secret: true }),
    // Wrong passwords since the last right one; counted if the auth policy has a limit.
    failedAttempts: f.int({ ...COUNT, access: 'internal' }),
    certPem: f.text({
      access: 'create',
      nullable: true,
      omitNull: true,
      filter: true,
      summary: 'Of the method cert: one certificate, as PEM.',
    }),
    fingerprint: f.text({ access: 'read', nullable: true, omitNull: true, filter: 'certFingerprint' }),
    fingerprint256: f.text({ access: 'internal', nullable: true, unique: true }),
    // The certificate that an extension issued, until its holder verifies that it has received it.
    unverifiedCertPem: f.text({ access: 'internal', nullable: true }),
    // The authority of the certificate, if an operator brought it.
    caId: f.reference('cas', { access: 'internal', nullable: true, onDelete: 'cascade' }),
    publicKeyPrint: f.text({ access: 'internal', nullable: true, filter: true }),
    isIssuedByNetwork: f.bool({ access: 'read', filter: true }),
    isExtendRequested: f.bool({ access: 'read', filter: true }),
    isKeyRollRequested: f.bool({ access: 'read', filter: true }),
    extendRequestedAt: f.time({ access: 'read', nullable: true, omitNull: true, filter: true }),
    lastAuthResolvedToRoot: f.bool({ access: 'read', filter: true }),
    extendLog: f.json(typed<unknown[]>(listOf(extension)), { access: 'read' }),
  },
  inputs: {
    password: f.text({
      required: 'replace',
      nullable: true,
      acceptsNull: 'patch',
      ...passwordLength,
      secret: true,
      summary: 'Of the method updb; the auth policy of the identity may demand more of it.',
    }),
    // The stored hash that the owner has proven to know the password of.
    provenHash: f.text({ access: 'internal', nullable: true, secret: true }),
  },
  links: [{ key: 'identities', to: { resource: 'identities', field: 'identityId' } }],
  // Credentials are not written into files.
  networkFile: false,
  columns: ['id', 'method', 'identityId', 'username', 'fingerprint'],
  example: {
    create: { identityId: 'laptop', method: 'updb', username: 'alice', password: 'correct horse battery' },
    filter: 'method = "cert"',
  },
})
