// Tokens of machines: secrets by which programs act for an identity, with some of its permissions.
import { checkWords } from '../permissions/words.ts'
import { f } from '../schema/fields.ts'
import { defineResource } from './define.ts'

/** The begin of every secret of a token. */
export const TOKEN_PREFIX = 'ectl_'

/** Whether a bearer token is meant as the secret of one, and not as a token of an issuer or a session. */
export function isMachineToken(bearerToken: string): boolean {
  return bearerToken.startsWith(TOKEN_PREFIX)
}

export const tokens = defineResource({
  name: 'token',
  plural: 'tokens',
  summary: 'A secret by which a machine acts for an identity, with some of its permissions.',
  isOwn: true,
  fields: {
    name: f.name(),
    identityId: f.reference('identities', {
      as: 'identity',
      required: 'create',
      access: 'create',
      filter: 'identity',
      onDelete: 'cascade',
      summary: 'The identity that requests with it are made for.',
    }),
    isAdmin: f.bool({
      access: 'create',
      default: false,
      filter: true,
      summary: 'Whether it administers the network, as long as its identity does.',
    }),
    permissions: f.strings({
      access: 'create',
      maxItems: 100,
      objection: checkWords,
      summary:
        'What it may administer, as long as its identity may. Without any, it only reads what is for every identity.',
    }),
    expiresAt: f.time({
      required: 'create',
      access: 'create',
      filter: true,
      summary: 'Until when it is accepted, at most 366 days from now.',
    }),
    lastUsedAt: f.time({
      access: 'read',
      nullable: true,
      filter: true,
      summary: 'When it was used last, to the minute.',
    }),
    // SHA-256 of the secret, base64url. The secret itself is never stored.
    secretHash: f.text({ access: 'internal', secret: true, unique: true }),
    // Whether the one that made it had passed TOTP, or administers and vouches for it: a policy that requires TOTP is met.
    isTotpComplete: f.bool({ access: 'internal' }),
  },
  // Made by `management-api/tokens.ts`, which shows the secret.
  verbs: ['list', 'detail', 'delete'],
  columns: ['id', 'name', 'identityId', 'isAdmin', 'permissions', 'expiresAt', 'lastUsedAt'],
  example: {
    create: { name: 'nightly build', identityId: 'laptop' },
    filter: 'lastUsedAt < datetime(2026-01-31T12:00:00Z)',
  },
})
