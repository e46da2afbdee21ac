// The claims of a token of the controller's own that a client presents for others.
import type { JWTPayload } from 'jose'
import type { TokenKeys } from '../tokens/token-keys.ts'
import { type Grant, SECOND_SIGNER_PREFIX } from './claims.ts'
import { CLIENT_IDS, type ClientId, isClientId, parseScopes } from './clients.ts'

/** The kinds of token by which a client goes on with its session. */
export type TokenKind = 'a' | 'r'

/** A token that was signed for a session by OpenID Connect, and has not expired. */
export interface GrantedToken {
  readonly kind: TokenKind
  readonly jti: string
  readonly apiSessionId: string
  readonly expiresAt: number
  readonly grant: Grant
}

/** Verifies an access token or a refresh token. Returns why it is not accepted, if it is not. */
export async function verifyGranted(
  { tokenKeys }: { readonly tokenKeys: TokenKeys },
  token: string,
): Promise<GrantedToken | 'expired' | 'invalid' | 'of another kind'> {
  const claims = await tokenKeys.judge(token, CLIENT_IDS)
  if (typeof claims === 'string') return claims
  const { exp, jti, z_asid: apiSessionId, z_t: kind } = claims
  if ((kind !== 'a' && kind !== 'r') || typeof jti !== 'string' || typeof apiSessionId !== 'string')
    return 'of another kind'
  return { kind, jti, apiSessionId, expiresAt: exp as number, grant: readGrant(claims) }
}

function readGrant(claims: JWTPayload): Grant {
  const { amr, client_id: clientId, iss, scopes, z_cfs: fingerprints, z_env, z_ra, z_sdk } = claims
  const methods = toTexts(amr)
  return {
    issuer: String(iss),
    clientId: isClientId(String(clientId)) ? (clientId as ClientId) : 'native',
    scopes: parseScopes(toTexts(scopes).join(' ')),
    signerIds: methods.flatMap((method) =>
      method.startsWith(SECOND_SIGNER_PREFIX) ? method.slice(SECOND_SIGNER_PREFIX.length) : [],
    ),
    envInfo: toObject(z_env),
    sdkInfo: toObject(z_sdk),
    remoteAddress: String(z_ra ?? ''),
    fingerprints: toTexts(fingerprints),
  }
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

function toObject(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
}
