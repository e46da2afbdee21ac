// API sessions: one record a sign-in, found by the hash of its token.
import { f } from '../schema/fields.ts'
import { listOf, orNull, requiredObject, text, typed, whole } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'

/** A refresh token that was exchanged for the next one. */
export interface FormerRefreshToken {
  readonly id: string
  /** How old the session was when the token was exchanged, in milliseconds: a clock that is set does not change its age. */
  readonly exchangedAtAge: number
}

/** A sign-in by OpenID Connect: what decides to whom its code is given, and, until its tokens are issued, what they will say. */
export interface StoredAuthorization {
  readonly redirectUri: string
  /** SHA-256 of a secret of the client, base64url. */
  readonly codeChallenge: string
  readonly pending: PendingTokens | null
  /** The tokens of signers other than the one by which it began, for second factors; absent until its own tokens are issued. */
  readonly secondTokens?: readonly ShownToken[]
}

/** A token of an external signer that was verified, as far as what rests on it depends on it. */
interface ShownToken {
  readonly signerId: string
  readonly signerRules: string
  readonly signerKey: string
  readonly subject: string
  readonly isExternalId: boolean
  readonly validUntil: number
}

/** The part of a sign-in that its tokens will show: the client asked for it, proved or reported it. */
export interface PendingTokens {
  readonly scopes: readonly ('openid' | 'offline_access')[]
  readonly nonce?: string | undefined
  /** The hash of the key of the browser that signed in by a page. */
  readonly browser?: string | undefined
  /** The tokens of external signers that came with the credential, or as a second factor. */
  readonly externalTokens: readonly ShownToken[]
  readonly envInfo?: Readonly<Record<string, unknown>> | undefined
  readonly sdkInfo?: Readonly<Record<string, unknown>> | undefined
  /** The request for a session certificate. */
  readonly csr?: string | undefined
  /** Address and port of the client. */
  readonly remoteAddress: string
}

/** A factor that a session still owes. */
const authQuery = requiredObject(
  {
    typeId: { ...text, enum: ['MFA', 'EXT-JWT'], description: 'A one-time code, or a token of an external signer.' },
    id: { ...text, description: 'The signer whose token is expected.' },
    provider: {
      ...text,
      enum: ['native', 'ziti', 'url'],
      description: 'This controller, by the name that it has in the dialect of the request; or the signer at httpUrl.',
    },
    format: { ...text, enum: ['numeric', 'alphaNumeric'], description: 'The form of a code, as the dialect calls it.' },
    httpMethod: { ...text, enum: ['POST'] },
    httpUrl: { ...text, description: 'Where the code is sent, or where the signer issues a token.' },
    minLength: whole,
    maxLength: whole,
    clientId: { ...text, description: 'By which id the signer knows clients of this network.' },
    scopes: { ...orNull(listOf(text)), description: 'What a client asks the signer for.' },
  },
  ['id', 'format', 'httpMethod', 'httpUrl', 'minLength', 'maxLength', 'clientId'],
)

export const apiSessions = defineResource({
  name: 'api-session',
  plural: 'api-sessions',
  summary: 'A sign-in of an identity, alive while it is used.',
  audit: 'event',
  fields: {
    identityId: f.reference('identities', {
      as: 'identity',
      access: 'read',
      filter: 'identity',
      onDelete: 'cascade',
    }),
    authenticatorId: f.text({ access: 'read', filter: 'authenticator' }),
    // The authority of the certificate that it began with, if an operator brought that authority.
    caId: f.reference('cas', { access: 'internal', nullable: true, onDelete: 'cascade' }),
    // SHA-1 of the certificate that it began with: connections of its client may outlive an exchange of the certificate.
    certFingerprint: f.text({ access: 'internal', nullable: true }),
    // How its identity signed in; null for the session of a router.
    method: f.text({ access: 'internal', nullable: true }),
    // The external id that named its identity, and SHA-256 of the key of the token that it began by.
    externalId: f.text({ access: 'internal', nullable: true }),
    signerKey: f.text({ access: 'internal', nullable: true }),
    // The client of OpenID Connect that it began by; null if it has a token of its own. And the id of its refresh token, with those
    // that were exchanged lately.
    clientId: f.text({ access: 'internal', nullable: true }),
    refreshTokenId: f.text({ access: 'internal', nullable: true, masked: true }),
    formerRefreshTokens: f.json(typed<readonly FormerRefreshToken[]>({ type: 'array' }), {
      access: 'internal',
      default: [],
      masked: true,
    }),
    // The authorization request that it began by, which leads to one session at a time, and what is known of it.
    authorizationRequestId: f.text({ access: 'internal', nullable: true }),
    authorization: f.json(typed<StoredAuthorization>({ type: 'object' }), {
      access: 'internal',
      nullable: true,
      masked: true,
    }),
    // Whether tokens were issued for it; and when it ends at the latest: with its sign-in until then, and with the last token from
    // then on. Null if it has a token of its own.
    hasTokens: f.bool({ access: 'internal' }),
    endsAt: f.time({ access: 'internal', nullable: true }),
    // When its identity signed in, by a clock that is not set: its age counts from then.
    authenticatedAt: f.time({ access: 'internal' }),
    // SHA-256 of the token, base64url. The token itself is never stored, and sessions are looked up by it in memory alone.
    tokenHash: f.text({ access: 'internal', secret: true }),
    ipAddress: f.text({ access: 'read', filter: true }),
    configTypes: f.strings({ access: 'read' }),
    // The identity had verified TOTP when it signed in, or another session verified one since; what a policy demands beyond that
    // is asked of each request.
    owesTotp: f.bool({ access: 'internal', filter: 'mfaRequired' }),
    isMfaComplete: f.bool({ access: 'read', filter: 'mfaComplete' }),
    // When the session last passed a TOTP code; posture checks ask how long ago that was.
    mfaPassedAt: f.time({ access: 'internal', nullable: true }),
    // When the machine woke and was unlocked, as the client reported: posture checks prompt for another code after that.
    wokenAt: f.time({ access: 'internal', nullable: true }),
    unlockedAt: f.time({ access: 'internal', nullable: true }),
    // How many wrong codes it sent since the last one that was accepted; the fifth ends it.
    wrongCodeCount: f.int({ access: 'internal', min: 0, max: 100 }),
    isCertExtendable: f.bool({ access: 'read' }),
    improperClientCertChain: f.bool({ access: 'read', filter: true }),
    lastActivityAt: f.time({ access: 'read', filter: true }),
  },
  computed: {
    token: {
      ...text,
      nullable: true,
      description:
        'Shown to the session itself: a UUID, or the access token of the request. Null, or a UUID of zeros, to others.',
    },
    isMfaRequired: { type: 'boolean' },
    authQueries: listOf(authQuery),
    cachedLastActivityAt: { type: 'string', format: 'date-time' },
    isCertExtendRequested: { type: 'boolean' },
    isCertKeyRollRequested: { type: 'boolean' },
    expirationSeconds: { type: 'integer' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
  // Shown to the session itself.
  optionalMembers: ['expirationSeconds', 'expiresAt'],
  computedFrom: [
    'identityId',
    'authenticatorId',
    'clientId',
    'owesTotp',
    'isMfaComplete',
    'isCertExtendable',
    'lastActivityAt',
    'method',
    'authenticatedAt',
    'endsAt',
  ],
  verbs: ['list', 'detail', 'delete'],
  links: ['sessions'],
  credentials: ['token'],
  isConfidential: true,
  columns: ['id', 'identityId', 'ipAddress', 'lastActivityAt'],
  example: { create: {}, filter: 'createdAt > datetime(2026-01-31T12:00:00Z) sort by createdAt desc' },
})
