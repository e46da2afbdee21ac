// The second factor of an identity: the secret that it shares with an authenticator app, and its recovery codes.
import { f } from '../schema/fields.ts'
import { listOf, orNull, text, typed } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

/** Steps of a time-based code since 1970, up to the largest exact integer. */
const STEP = { min: 0, max: Number.MAX_SAFE_INTEGER } as const

/** A wrong code, as long as it counts. */
export interface WrongCode {
  /** In milliseconds since 1970. */
  readonly at: number
  /** The share of attempts that it counts in: that of any client, or a reserve of clients that probably are the owner. */
  readonly share: 'any' | 'full-session' | 'known-source' | 'recovery-code'
  readonly source: string
}

export const mfaEnrollments = defineResource({
  name: 'mfa-enrollment',
  plural: 'mfa-enrollments',
  summary: 'The second factor of an identity: time-based codes (TOTP), and recovery codes.',
  fields: {
    identityId: f.reference('identities', { access: 'internal', unique: true, onDelete: 'cascade' }),
    // The identity has proven by a code that its app holds the secret. Only then is the factor required of it.
    isVerified: f.bool({ access: 'read' }),
    // The session that started it, until it is verified: no other one sees it. Another client may know the password, too.
    apiSessionId: f.reference('api-sessions', { access: 'internal', nullable: true, onDelete: 'cascade' }),
    encryptedSecret: f.text({ access: 'internal', secret: true, isEncrypted: true }),
    encryptedRecoveryCodes: f.text({ access: 'internal', secret: true, isEncrypted: true }),
    // The step of the last accepted code: that code and all before it are refused, even inside the window.
    lastUsedStep: f.int({ ...STEP, access: 'internal' }),
    // Bounded by the shares; see `wrong-codes.ts`.
    wrongCodes: f.json(typed<readonly WrongCode[]>({ type: 'array' }), { access: 'internal', default: [] }),
    // The sources from which the factor was passed, latest last.
    knownSources: f.json(typed<readonly string[]>({ type: 'array' }), { access: 'internal', default: [] }),
  },
  // Shown to the owner alone, by the operations that ask for it.
  computed: { provisioningUrl: text, recoveryCodes: orNull(listOf(text)) },
  optionalMembers: ['provisioningUrl'],
  computedFrom: ['identityId', 'isVerified', 'encryptedSecret', 'encryptedRecoveryCodes'],
  // Made and ended by operations of the identity, and ended by administrators.
  verbs: [],
  isConfidential: true,
  columns: ['isVerified'],
  example: { create: {}, filter: 'id = "…"' },
})
