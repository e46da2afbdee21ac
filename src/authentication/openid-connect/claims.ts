// The claims of the tokens that a sign-in by OpenID Connect leads to. Clients and routers read them; what a session may do is judged
// by the session itself.
import { hash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { AuthPolicy } from '../auth-policies.ts'
import type { ExtensionRequests } from '../credentials/extension-requests.ts'
import type { ClientId, GrantedScope } from './clients.ts'

/** The values that tokens of a session keep through their exchanges for later ones. */
export interface Grant {
  readonly issuer: string
  readonly clientId: ClientId
  readonly scopes: readonly GrantedScope[]
  /** The signers whose tokens came with the credential. */
  readonly signerIds: readonly string[]
  readonly envInfo: Readonly<Record<string, unknown>> | null
  readonly sdkInfo: Readonly<Record<string, unknown>> | null
  readonly remoteAddress: string
  /** SHA-1 of the certificates of which the client must hold one. */
  readonly fingerprints: readonly string[]
}

/** The session that tokens are issued for, as its row and memory hold it. */
export interface GrantedSession {
  readonly row: Entity<typeof apiSessions>
  readonly live: LiveApiSession
  readonly policy: AuthPolicy
}

export interface TokenTimes {
  readonly issuedAt: number
  readonly expiresAt: number
}

// A client sends its token with every request, and its report about itself can be most of it.
const MAX_INFO_LENGTH = 100
const MAX_CONFIG_TYPES = 32

/** The claims of an access token (`a`) or a refresh token (`r`). */
export function makeTokenClaims(
  { row, live, policy }: GrantedSession,
  grant: Grant,
  { type, jti, issuedAt, expiresAt }: TokenTimes & { readonly type: 'a' | 'r'; readonly jti: string },
  extensions: ExtensionRequests,
): JWTPayload {
  const { clientId, fingerprints, issuer, remoteAddress, scopes } = grant
  const { isCertExtendRequested, isCertKeyRollRequested } = extensions.get(
    row.isCertExtendable ? row.authenticatorId : '',
  )
  const { externalId, isAdmin } = live.identity
  return {
    iss: issuer,
    sub: row.identityId,
    aud: [clientId],
    exp: expiresAt,
    iat: issuedAt,
    nbf: issuedAt,
    auth_time: toSeconds(row.createdAt),
    jti,
    client_id: clientId,
    scopes: [...scopes],
    amr: listMethods({ row, live }, grant),
    z_aid: row.clientId ?? clientId,
    z_asid: row.id,
    z_t: type,
    z_authid: row.authenticatorId,
    ...(row.configTypes.length > 0 ? { z_ct: row.configTypes.slice(0, MAX_CONFIG_TYPES) } : {}),
    z_cfs: fingerprints.length > 0 ? [...fingerprints] : null,
    ...(row.certFingerprint === null ? {} : { z_acf: row.certFingerprint }),
    ...(row.method === 'cert' && policy.primary.cert.allowExpiredCerts ? { z_cae: true } : {}),
    z_cer: isCertExtendRequested,
    z_ckrr: isCertKeyRollRequested,
    z_ice: row.isCertExtendable,
    z_iccc: row.improperClientCertChain,
    ...(externalId === null ? {} : { z_eid: externalId }),
    ...(isAdmin ? { z_ia: true } : {}),
    z_ra: remoteAddress,
    z_sdk: grant.sdkInfo && shorten(grant.sdkInfo),
    z_env: grant.envInfo && shorten(grant.envInfo),
  }
}

/** The values that bind an ID token to what it is issued with. */
export interface IdTokenBinding {
  readonly accessToken?: string
  readonly code?: string
  readonly nonce?: string | undefined
}

export function makeIdClaims(
  { row, live }: GrantedSession,
  grant: Grant,
  { issuedAt, expiresAt }: TokenTimes,
  { accessToken, code, nonce }: IdTokenBinding,
): JWTPayload {
  const { clientId, issuer, scopes } = grant
  const { externalId, isAdmin, name } = live.identity
  return {
    iss: issuer,
    aud: [clientId],
    exp: expiresAt,
    iat: issuedAt,
    auth_time: toSeconds(row.createdAt),
    amr: listMethods({ row, live }, grant),
    azp: clientId,
    client_id: clientId,
    sid: row.id,
    ...(nonce === undefined ? {} : { nonce }),
    ...(accessToken === undefined ? {} : { at_hash: halfHash(accessToken) }),
    ...(code === undefined ? {} : { c_hash: halfHash(code) }),
    ...(scopes.includes('openid')
      ? { sub: row.identityId, name, z_ia: isAdmin, ...(externalId === null ? {} : { z_eid: externalId }) }
      : {}),
  }
}

/** In the methods of a token, before the id of a signer whose token came with the credential. */
export const SECOND_SIGNER_PREFIX = 'ejs:'

/** How the identity was authenticated (RFC 8176), in the words of the network. */
function listMethods({ row, live }: Pick<GrantedSession, 'row' | 'live'>, { signerIds }: Grant): string[] {
  return [
    ...(row.method === null ? [] : [row.method]),
    ...(live.isTotpComplete ? ['totp'] : []),
    ...signerIds.map((id) => SECOND_SIGNER_PREFIX + id),
  ]
}

function shorten(info: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(info).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(
    texts.filter(([, value]) => value !== '').map(([name, value]) => [name, value.slice(0, MAX_INFO_LENGTH)]),
  )
}

/** OpenID Connect Core, section 3.1.3.6. */
function halfHash(value: string): string {
  return hash('sha256', value, 'buffer').subarray(0, 16).toString('base64url')
}

export function toSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000)
}
