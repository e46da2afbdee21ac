// The parameters of an authorization request (RFC 6749, section 4.1.1; RFC 7636), as far as they are accepted.
import { type ClientId, type GrantedScope, isClientId, parseScopes } from './clients.ts'
import { OAuthError } from './oauth-error.ts'
import { isRedirectUriAllowed } from './redirect-uris.ts'

/** The parameters that are read. Others are skipped (RFC 6749, section 3.1). */
export const AUTHORIZATION_PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'method',
  'prompt',
  'max_age',
  'request',
  'request_uri',
] as const

export type SentParameters = Readonly<Partial<Record<(typeof AUTHORIZATION_PARAMETERS)[number], string>>>

export interface AuthorizationParameters {
  readonly clientId: ClientId
  readonly redirectUri: string
  readonly scopes: readonly GrantedScope[]
  readonly state: string | undefined
  readonly nonce: string | undefined
  /** SHA-256 of a secret of the client, base64url. */
  readonly codeChallenge: string
  /** The client cannot show a page, so that it is refused if it would have to. */
  readonly isSilent: boolean
}

// Together, and with what the id of a request adds to them, they fit into a URL that every client and proxy can handle.
const MAX_BYTES = 4_096

const SHA256_BASE64URL = /^[\w-]{43}$/

/**
 * @param configTypes the config types that the client names besides
 * @throws OAuthError. Nothing is sent to a URI before it is known to be the client's.
 */
export function readAuthorizationParameters(
  sent: SentParameters,
  redirectUris: readonly string[],
  configTypes: readonly string[] = [],
): AuthorizationParameters {
  const bytes = [...Object.values(sent), ...configTypes].reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  if (bytes > MAX_BYTES) throw new OAuthError('invalid_request', 'the parameters are too long')
  const clientId = require(sent, 'client_id')
  if (!isClientId(clientId)) throw new OAuthError('invalid_client', 'the client is unknown')
  const redirectUri = require(sent, 'redirect_uri')
  if (!isRedirectUriAllowed(redirectUri, redirectUris))
    throw new OAuthError('invalid_request', 'the redirect_uri is not one of the client')
  if (sent.request !== undefined || sent.request_uri !== undefined)
    throw new OAuthError('request_not_supported', 'request objects are not supported')
  if (require(sent, 'response_type') !== 'code')
    throw new OAuthError('unauthorized_client', 'the only response_type is code')
  if ((sent.response_mode ?? 'query') !== 'query')
    throw new OAuthError('invalid_request', 'the only response_mode is query')
  const scopes = parseScopes(require(sent, 'scope'))
  const codeChallenge = require(sent, 'code_challenge')
  if (sent.code_challenge_method !== 'S256' || !SHA256_BASE64URL.test(codeChallenge))
    throw new OAuthError('invalid_request', 'the code_challenge must be one of the method S256')
  if (sent.max_age !== undefined && !/^\d{1,9}$/.test(sent.max_age))
    throw new OAuthError('invalid_request', 'the max_age must be a number of seconds')
  const isSilent = readIsSilent(sent.prompt)
  return { clientId, redirectUri, scopes, state: sent.state, nonce: sent.nonce, codeChallenge, isSilent }
}

function require(sent: SentParameters, name: keyof SentParameters): string {
  const value = sent[name]
  if (!value) throw new OAuthError('invalid_request', `${name} is missing`)
  return value
}

/** Clients send text of their own as a prompt, too. */
function readIsSilent(prompt: string | undefined): boolean {
  const words = (prompt ?? '').split(' ')
  if (!words.includes('none')) return false
  if (words.length > 1) throw new OAuthError('invalid_request', 'the prompt none stands alone')
  return true
}
