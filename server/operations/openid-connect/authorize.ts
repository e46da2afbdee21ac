// The authorization endpoint (RFC 6749, section 3.1), and the way back to the client when its sign-in is complete.
import {
  AUTHORIZATION_PARAMETERS,
  readAuthorizationParameters,
  type SentParameters,
} from '../../../src/authentication/openid-connect/authorization-parameters.ts'
import { OAuthError } from '../../../src/authentication/openid-connect/oauth-error.ts'
import { appendParameters } from '../../../src/authentication/openid-connect/redirect-uris.ts'
import { findPendingFactors } from '../../../src/authentication/openid-connect/request-sign-in.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { findOwnRequest } from './browsers.ts'
import { COMMON, formBody, NO_STORE, readParameter, requireIssuer, textQuery } from './forms.ts'

const AUTHORIZE = {
  ...COMMON,
  atRoot: ['/oidc/authorize'],
  access: { public: 'a sign-in begins there' },
  query: {
    ...textQuery(AUTHORIZATION_PARAMETERS),
    configTypes: { schema: { type: 'string' }, isMultiple: true },
  },
  returns: { kind: 'raw', contentType: 'text/plain' },
  hasOneForm: true,
  errorForm: 'oauth',
} as const

const MAX_CONFIG_TYPES = 100

/** The page of each method, by the name that clients ask for it. */
const METHOD_PAGES: Readonly<Record<string, string>> = { password: 'username', cert: 'cert', 'ext-jwt': 'ext-jwt' }

export function redirect(location: string): Response {
  return { status: 302, contentType: 'text/plain', body: '', headers: { ...NO_STORE, location } }
}

function authorize(call: Call<unknown>, form: URLSearchParams): Response {
  const { controller, peer, query } = call
  const { requests } = controller.openIdConnect
  const issuer = requireIssuer(call)
  const configTypes = [...((query.configTypes as string[] | undefined) ?? []), ...form.getAll('configTypes')]
  const allParameters = mergeParameters(query, form)
  const parameters = readAuthorizationParameters(allParameters, listRedirectUris(controller, issuer), configTypes)
  const { redirectUri, state } = parameters
  if (parameters.isSilent)
    return redirect(
      appendParameters(redirectUri, { error: 'login_required', error_description: 'the user has to sign in', state }),
    )
  const id = requests.begin(parameters, configTypes.slice(0, MAX_CONFIG_TYPES))
  const page = METHOD_PAGES[allParameters.method ?? ''] ?? (peer.own ? 'cert' : 'username')
  return redirect(`/oidc/login/${page}?authRequestID=${id}`)
}

/** The addresses of the settings, and that of a console which the controller serves itself, at the address of the request. */
function listRedirectUris({ config, registeredUris }: Call['controller'], issuer: string): readonly string[] {
  const { redirectUris } = registeredUris
  return config['console.directory'] === undefined
    ? redirectUris
    : [...redirectUris, `${new URL(issuer).origin}/auth/callback`]
}

/** A client sends its parameters in the form or in the query, or a part in each. */
function mergeParameters(query: Call['query'], form: URLSearchParams): SentParameters {
  const entries = AUTHORIZATION_PARAMETERS.map((name) => [name, readParameter(form, query, name)] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/** @throws OAuthError if there is no such request */
async function finish(call: Call<unknown>): Promise<Response> {
  const { controller, query } = call
  const { requests } = controller.openIdConnect
  const request = await findOwnRequest(call, String(query.id ?? ''), true)
  if (!request) throw new OAuthError('invalid_request', 'there is no such sign-in, or its time is over')
  const { login, redirectUri, state } = request
  if (!login || findPendingFactors(controller, request) !== undefined) {
    const error_description = 'the sign-in is not complete'
    return redirect(appendParameters(redirectUri, { error: 'interaction_required', error_description, state }))
  }
  return redirect(appendParameters(redirectUri, { code: requests.issueCode(login), state }))
}

export const authorizeOperations: readonly AnyOperation[] = [
  defineOperation({
    ...AUTHORIZE,
    id: 'authorizeClient',
    method: 'GET',
    summary: 'Begins a sign-in by OpenID Connect: sends the client to the page that takes its credential.',
    run: (call) => authorize(call, new URLSearchParams()),
  }),
  defineOperation<URLSearchParams>({
    ...AUTHORIZE,
    id: 'authorizeClientByForm',
    method: 'POST',
    summary: 'The same, with the parameters in a form.',
    body: formBody,
    run: (call) => authorize(call, call.body),
  }),
  defineOperation({
    ...AUTHORIZE,
    id: 'finishAuthorization',
    atRoot: ['/oidc/authorize/callback'],
    method: 'GET',
    query: textQuery(['id']),
    summary: 'Ends a sign-in: sends the client back to its redirect URI, with a code.',
    run: finish,
  }),
]
