// How identities may sign in: which first factors are open to them, and which second factor they owe.
import { f } from '../schema/fields.ts'
import { DURATION_MINUTES, INT32 } from '../schema/ranges.ts'
import { passwordLength } from './authenticators.ts'
import { defineResource } from './define.ts'

const demanded = { required: true, acceptsNull: 'patch' } as const

/** The policy of identities that name none. */
export const DEFAULT_POLICY = 'default'

/** The initial content of the policy of identities that name none: one factor of any kind is enough. */
export const permissivePolicy = {
  primary: {
    cert: { allowed: true, allowExpiredCerts: true },
    extJwt: { allowed: true, allowedSigners: [] },
    updb: {
      allowed: true,
      minPasswordLength: 5,
      requireSpecialChar: false,
      requireNumberChar: false,
      requireMixedCase: false,
      maxAttempts: 0,
      lockoutDurationMinutes: 0,
    },
  },
  secondary: { requireTotp: false, requireExtJwtSigner: null },
}

export const authPolicies = defineResource({
  name: 'auth-policy',
  plural: 'auth-policies',
  summary: 'Which ways of signing in are open to an identity, and what each demands.',
  fields: {
    name: f.name({ acceptsNull: 'patch' }),
    primary: f.object(
      {
        cert: f.object(
          {
            allowed: f.bool({ ...demanded, filter: true, summary: 'Whether a certificate signs in.' }),
            allowExpiredCerts: f.bool({
              ...demanded,
              filter: true,
              summary: 'Whether one outside its dates does, too.',
            }),
          },
          demanded,
        ),
        extJwt: f.object(
          {
            allowed: f.bool({ ...demanded, filter: true, summary: 'Whether a token of an external signer signs in.' }),
            allowedSigners: f.references('external-jwt-signers', {
              ...demanded,
              unknownStatus: 404,
              summary: 'The signers whose tokens are accepted; all of them if the list is empty.',
            }),
          },
          demanded,
        ),
        updb: f.object(
          {
            allowed: f.bool({ ...demanded, filter: true, summary: 'Whether a username and its password sign in.' }),
            minPasswordLength: f.int({
              ...demanded,
              min: INT32.min,
              max: passwordLength.maxLength,
              filter: true,
              summary: 'How many characters a new password has at least.',
            }),
            requireSpecialChar: f.bool({
              ...demanded,
              filter: true,
              summary: 'Whether a new password must hold a character that is neither letter, digit nor space.',
            }),
            requireNumberChar: f.bool({
              ...demanded,
              filter: true,
              summary: 'Whether a new password must hold a digit.',
            }),
            requireMixedCase: f.bool({
              ...demanded,
              filter: true,
              summary: 'Whether a new password must hold upper-case and lower-case letters.',
            }),
            maxAttempts: f.int({
              ...demanded,
              ...INT32,
              filter: true,
              summary: 'After how many wrong passwords in a row the username is locked; 0 is never.',
            }),
            lockoutDurationMinutes: f.int({
              ...demanded,
              ...DURATION_MINUTES,
              summary: 'For how long it is locked; 0 is until an administrator enables it.',
            }),
          },
          demanded,
        ),
      },
      { required: true, commandDefault: permissivePolicy.primary, summary: 'The first factors.' },
    ),
    secondary: f.object(
      {
        requireTotp: f.bool({ ...demanded, filter: true, summary: 'Whether a one-time password is required.' }),
        requireExtJwtSigner: f.reference('external-jwt-signers', {
          nullable: true,
          acceptsNull: true,
          blank: null,
          omitNull: true,
          filter: true,
          unknownStatus: 404,
          summary: 'The signer whose token every request must carry.',
        }),
      },
      { ...demanded, commandDefault: permissivePolicy.secondary, summary: 'The second factor, if any.' },
    ),
  },
  builtIn: [{ id: DEFAULT_POLICY, name: 'Default', ...permissivePolicy }],
  columns: ['id', 'name'],
  example: { create: { name: 'staff', ...permissivePolicy }, filter: 'primary.updb.allowed = true sort by name' },
})
