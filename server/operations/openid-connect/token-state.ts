// The endpoints about tokens that were issued: to whom one belongs, and the ends of its session.
import { OAuthError } from '../../../src/authentication/openid-connect/oauth-error.ts'
import { revokeToken, signOut } from '../../../src/authentication/openid-connect/sign-out.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { respondWithPage } from '../../pages/page.ts'
import { endPage } from '../../pages/sign-in-pages.ts'
import { redirect } from './authorize.ts'
import { isBrowser } from './browsers.ts'
import { COMMON, formBody, NO_STORE, readParameter, requireIssuer, textQuery } from './forms.ts'
import { sessionErrorPage } from './pages.ts'
import { jsonResponse, readClient } from './token.ts'

const OAUTH = { ...COMMON, hasOneForm: true, errorForm: 'oauth', errorPage: sessionErrorPage } as const
const JSON_RETURNS = { kind: 'raw', contentType: 'application/json' } as const
const TEXT_RETURNS = { kind: 'raw', contentType: 'text/plain' } as const

const USERINFO = {
  ...OAUTH,
  atRoot: ['/oidc/userinfo'],
  access: { public: 'the access token is judged by the operation, whose errors have another form' },
  returns: JSON_RETURNS,
} as const

/** The claims that an access token gives a right to (OpenID Connect Core, section 5.3). */
function showUser(call: Call<unknown>): Response {
  const { accessToken, bearerTokens, context } = call
  requireIssuer(call)
  if (bearerTokens.length === 0) throw new OAuthError('invalid_request', 'the access token is missing', 401)
  const { caller } = context
  if (!accessToken || caller.kind !== 'identity')
    throw new OAuthError('access_denied', 'the access token is invalid', 401)
  return jsonResponse({ sub: caller.identityId, name: caller.identityName })
}

const END_SESSION = {
  ...OAUTH,
  atRoot: ['/oidc/end_session'],
  access: { public: 'a token of the session is the credential' },
  query: textQuery(['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state']),
  returns: TEXT_RETURNS,
} as const

async function endOwnSession(call: Call<unknown>, form: URLSearchParams): Promise<Response> {
  const { context, controller, query } = call
  requireIssuer(call)
  const read = (name: string) => readParameter(form, query, name)
  const state = read('state')
  const uri = await signOut(controller, context, controller.registeredUris.postLogoutUris, {
    idTokenHint: read('id_token_hint'),
    clientId: read('client_id'),
    postLogoutRedirectUri: read('post_logout_redirect_uri'),
    state,
  })
  return redirect(uri ?? '/oidc/logged-out')
}

export const tokenStateOperations: readonly AnyOperation[] = [
  defineOperation({
    ...USERINFO,
    id: 'showUserInfo',
    method: 'GET',
    summary: 'The identity of an access token.',
    run: showUser,
  }),
  defineOperation<URLSearchParams>({
    ...USERINFO,
    id: 'showUserInfoByPost',
    method: 'POST',
    summary: 'The identity of an access token.',
    body: formBody,
    run: showUser,
  }),
  defineOperation<URLSearchParams>({
    ...OAUTH,
    id: 'introspectToken',
    atRoot: ['/oidc/oauth/introspect'],
    method: 'POST',
    summary: 'Refuses introspection, which is for clients with a secret.',
    access: { public: 'it refuses every client' },
    body: formBody,
    returns: JSON_RETURNS,
    run(call) {
      requireIssuer(call)
      readClient(call)
      throw new OAuthError('invalid_client', 'the client must be authenticated, and has no secret')
    },
  }),
  defineOperation<URLSearchParams>({
    ...OAUTH,
    id: 'revokeToken',
    atRoot: ['/oidc/revoke'],
    method: 'POST',
    summary: 'Ends the session of a token (RFC 7009).',
    access: { public: 'the token is the credential' },
    body: formBody,
    returns: TEXT_RETURNS,
    async run(call) {
      requireIssuer(call)
      const { body, context, controller } = call
      await revokeToken(controller, context, { clientId: readClient(call), token: body.get('token') ?? undefined })
      return { status: 200, contentType: 'text/plain', body: '', headers: NO_STORE }
    },
  }),
  defineOperation({
    ...END_SESSION,
    id: 'endSession',
    method: 'GET',
    summary: 'Ends the session of a token, and sends the client on.',
    run: (call) => endOwnSession(call, new URLSearchParams()),
  }),
  defineOperation<URLSearchParams>({
    ...END_SESSION,
    id: 'endSessionByForm',
    method: 'POST',
    summary: 'The same, with the parameters in a form.',
    body: formBody,
    run: (call) => endOwnSession(call, call.body),
  }),
  defineOperation({
    ...OAUTH,
    id: 'showSignedOut',
    atRoot: ['/oidc/logged-out'],
    method: 'GET',
    summary: 'Says that the session has ended.',
    access: { public: 'it is the same for everyone' },
    returns: TEXT_RETURNS,
    run: ({ headers }) =>
      isBrowser(headers)
        ? respondWithPage(endPage('You are signed out', ['You may close this window.'], 200))
        : { status: 200, contentType: 'text/plain', body: 'You are signed out.\n', headers: NO_STORE },
  }),
]
