// The grants by which a client goes on with its session: refresh (RFC 6749, section 6), and token exchange (RFC 8693).
import { newToken } from '../../foundation/ids.ts'
import type { SigningRequest } from '../../pki/requests.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { createActorContext } from '../api-sessions/callers.ts'
import { type Grant, type GrantedSession, makeIdClaims, toSeconds } from './claims.ts'
import { type GrantedScope, parseScopes } from './clients.ts'
import { type GrantedToken, verifyGranted } from './granted-claims.ts'
import { issueTokens, type TokenResponse } from './issue-tokens.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { type PresentedToken, requireContinuation, requireRefreshToken, useRefreshToken } from './refresh-tokens.ts'
import { issueLoginCertificate, readLoginRequest } from './session-certificate.ts'

const TYPE_PREFIX = 'urn:ietf:params:oauth:token-type:'

/** The parameters that both grants have. */
interface ContinuationParameters extends PresentedToken {
  /** The issuer for the request. */
  readonly issuer: string
  readonly scope: string | undefined
  /** The request for another session certificate. */
  readonly csr: string | undefined
}

/** @throws OAuthError */
export async function redeemRefreshToken(
  parts: OpenIdParts,
  context: Context,
  parameters: ContinuationParameters,
): Promise<TokenResponse> {
  const grantedToken = await requireRefreshToken(parts, parameters)
  const grant = narrowGrant(grantedToken, parameters)
  const session = await requireContinuation(parts, context, grantedToken, parameters)
  const request = readRequest(grant, parameters)
  const ownContext = createOwnContext(parts, context, session)
  const refreshTokenId = await useRefreshToken(parts, ownContext, grantedToken, { isExchanged: true })
  return issueNext(parts, ownContext, session, grant, { refreshTokenId, request })
}

export interface ExchangeParameters extends ContinuationParameters {
  readonly subjectType: string | undefined
  readonly requestedType: string | undefined
}

/** The members of a response to a token exchange (RFC 8693, section 2.2.1). */
export type ExchangeResponse =
  | (Omit<TokenResponse, 'id_token'> & { readonly issued_token_type: string })
  | { readonly access_token: string; readonly token_type: 'N_A'; readonly issued_token_type: string }

/** Exchanges a refresh token for each other kind, or an access token for one that ends with it. @throws OAuthError */
export async function exchangeToken(
  parts: OpenIdParts,
  context: Context,
  parameters: ExchangeParameters,
): Promise<ExchangeResponse> {
  const subject = await requireSubject(parts, parameters)
  const grant = narrowGrant(subject, parameters)
  const isRefresh = subject.kind === 'r'
  const requested = readType(parameters.requestedType) ?? (isRefresh ? 'refresh_token' : 'access_token')
  // An access token must not outlive itself.
  if (!isRefresh && requested === 'refresh_token')
    throw new OAuthError('invalid_request', 'an access token cannot be exchanged for a refresh token')
  const session = await requireContinuation(parts, context, subject, parameters)
  const request = requested === 'id_token' ? undefined : readRequest(grant, parameters)
  const ownContext = createOwnContext(parts, context, session)
  const isExchanged = requested === 'refresh_token'
  const refreshTokenId = isRefresh ? await useRefreshToken(parts, ownContext, subject, { isExchanged }) : undefined
  const issued_token_type = TYPE_PREFIX + requested
  if (requested === 'id_token') {
    const access_token = await signIdToken(parts, session, grant)
    return { access_token, token_type: 'N_A', issued_token_type }
  }
  const { id_token: _, ...tokens } = await issueNext(parts, ownContext, session, grant, {
    request,
    refreshTokenId: isExchanged ? refreshTokenId : undefined,
    ...(isRefresh ? {} : { endsAt: subject.expiresAt }),
  })
  return { ...tokens, issued_token_type }
}

function createOwnContext({ contexts }: OpenIdParts, context: Context, { live }: GrantedSession): Context {
  return createActorContext(contexts, context, live.id, live.identity)
}

async function requireSubject(parts: OpenIdParts, parameters: ExchangeParameters): Promise<GrantedToken> {
  const declaredKind = readType(parameters.subjectType)
  const grantedToken = await verifyGranted(parts, parameters.token)
  const isValid = typeof grantedToken === 'object' && !parts.openIdConnect.revokedTokens.has(grantedToken.jti)
  const kind = isValid && (grantedToken.kind === 'r' ? 'refresh_token' : 'access_token')
  if (!isValid || kind !== declaredKind) throw new OAuthError('invalid_request', 'the subject_token is invalid')
  return grantedToken
}

const TYPES = ['access_token', 'refresh_token', 'id_token'] as const

/** @throws OAuthError for a type that does not exist */
function readType(type: string | undefined): (typeof TYPES)[number] | undefined {
  if (type === undefined || type === '') return undefined
  const named = TYPES.find((name) => TYPE_PREFIX + name === type)
  if (!named) throw new OAuthError('invalid_request', 'this type of token is not supported')
  return named
}

/** The values of a token that the next ones keep, for the issuer and the scopes of this request. @throws OAuthError */
function narrowGrant({ grant }: GrantedToken, { issuer, scope }: ContinuationParameters): Grant {
  return { ...grant, issuer, scopes: narrowScopes(grant.scopes, scope) }
}

/** RFC 6749, section 6: a client may ask for less than it has. @throws OAuthError for more */
function narrowScopes(scopes: readonly GrantedScope[], requested: string | undefined): readonly GrantedScope[] {
  if (!requested) return scopes
  const narrowed = parseScopes(requested)
  const isNarrower = narrowed.every((scope) => scopes.includes(scope))
  if (!isNarrower || narrowed.length < new Set(requested.split(' ')).size)
    throw new OAuthError('invalid_scope', 'the scope is not part of that of the sign-in')
  return narrowed
}

/**
 * Reads the request for another session certificate, before a token is used up for it; undefined if there is none. A token that is not bound
 * to a certificate stays so.
 * @throws OAuthError
 */
function readRequest({ fingerprints }: Grant, { csr }: ContinuationParameters): SigningRequest | undefined {
  return csr && fingerprints.length > 0 ? readLoginRequest(csr) : undefined
}

async function issueNext(
  parts: OpenIdParts,
  context: Context,
  session: GrantedSession,
  grant: Grant,
  options: {
    readonly refreshTokenId: string | undefined
    readonly request: SigningRequest | undefined
    readonly endsAt?: number
  },
): Promise<TokenResponse> {
  const { endsAt, refreshTokenId, request } = options
  const certificate = request && (await issueLoginCertificate(parts, context, session.row, request))
  const tokens = { refreshTokenId, jti: newToken(), ...(endsAt === undefined ? {} : { endsAt }) }
  const bound = certificate ? { ...grant, fingerprints: certificate.fingerprints } : grant
  const response = await issueTokens(parts, session, bound, tokens)
  return certificate ? { ...response, session_cert: certificate.pem } : response
}

function signIdToken(
  { clock, config, tokenKeys }: OpenIdParts,
  session: GrantedSession,
  grant: Grant,
): Promise<string> {
  const issuedAt = toSeconds(clock.now())
  const times = { issuedAt, expiresAt: issuedAt + toSeconds(config['oidc.idTokenLifetime']) }
  return tokenKeys.sign(makeIdClaims(session, grant, times, {}))
}
