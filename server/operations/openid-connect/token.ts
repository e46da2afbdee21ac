// The token endpoint (RFC 6749, section 3.2).
import { type ClientId, isClientId } from '../../../src/authentication/openid-connect/clients.ts'
import { redeemCode } from '../../../src/authentication/openid-connect/code-grant.ts'
import { exchangeToken, redeemRefreshToken } from '../../../src/authentication/openid-connect/continue-session.ts'
import { OAuthError } from '../../../src/authentication/openid-connect/oauth-error.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { COMMON, NO_STORE, requireIssuer, tokenBody } from './forms.ts'

const BASIC = /^Basic +([\w+/=-]+)$/i

/**
 * Reads which client sends a form: by its id in the form, or by HTTP Basic with an empty secret, which some clients encode by the
 * alphabet of URLs. @throws OAuthError if it is unknown, or both name another one
 */
export function readClient({ headers, body }: Pick<Call<URLSearchParams>, 'headers' | 'body'>): ClientId {
  const [, credentials] = BASIC.exec(String(headers.authorization ?? '')) ?? []
  const ofHeader = credentials && readBasicId(Buffer.from(credentials, 'base64').toString('utf8'))
  const ofForm = body.get('client_id')
  const id = ofHeader ?? ofForm
  if (!id) throw new OAuthError('invalid_request', 'the client_id is missing')
  if (!isClientId(id) || (ofForm && ofForm !== id)) throw unknownClientError()
  return id
}

const unknownClientError = () => new OAuthError('invalid_client', 'the client is unknown')

/** RFC 6749, section 2.3.1: both parts are encoded as in a form. @throws OAuthError if they are not */
function readBasicId(credentials: string): string {
  const [id = ''] = credentials.split(':', 1)
  try {
    return decodeURIComponent(id.replaceAll('+', ' '))
  } catch {
    throw unknownClientError()
  }
}

/** @param name the parameter that has the token */
function readContinuation(call: Call<URLSearchParams>, name: string) {
  const { body, peer } = call
  const clientId = readClient(call)
  const token = body.get(name)
  if (!token) throw new OAuthError('invalid_request', `the ${name} is missing`)
  const csr = body.get('csr_pem') ?? undefined
  return { clientId, csr, issuer: requireIssuer(call), peer, scope: body.get('scope') ?? undefined, token }
}

async function grantTokens(call: Call<URLSearchParams>): Promise<object> {
  const { body, context, controller } = call
  const issuer = requireIssuer(call)
  const grantType = body.get('grant_type')
  if (!grantType) throw new OAuthError('invalid_request', 'the grant_type is missing')
  switch (grantType) {
    case 'authorization_code':
      return redeemCode(controller, context, {
        clientId: readClient(call),
        code: body.get('code') ?? undefined,
        redirectUri: body.get('redirect_uri') ?? undefined,
        codeVerifier: body.get('code_verifier') ?? undefined,
        issuer,
      })
    case 'refresh_token':
      return redeemRefreshToken(controller, context, readContinuation(call, 'refresh_token'))
    case 'urn:ietf:params:oauth:grant-type:token-exchange':
      // Some clients send all parameters, without values.
      if (body.get('actor_token')) throw new OAuthError('invalid_request', 'actor tokens are not supported')
      return exchangeToken(controller, context, {
        ...readContinuation(call, 'subject_token'),
        subjectType: body.get('subject_token_type') ?? undefined,
        requestedType: body.get('requested_token_type') ?? undefined,
      })
    default:
      throw new OAuthError('unsupported_grant_type', 'this grant_type is not supported')
  }
}

export function jsonResponse(body: object): Response {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(body), headers: NO_STORE }
}

export const tokenOperations: readonly AnyOperation[] = [
  defineOperation<URLSearchParams>({
    ...COMMON,
    id: 'grantTokens',
    atRoot: ['/oidc/oauth/token'],
    method: 'POST',
    summary: 'Issues tokens for a code, or for tokens of an earlier response.',
    access: { public: 'the code or the token is the credential' },
    body: tokenBody,
    returns: { kind: 'raw', contentType: 'application/json' },
    hasOneForm: true,
    errorForm: 'oauth',
    run: async (call) => jsonResponse(await grantTokens(call)),
  }),
]
