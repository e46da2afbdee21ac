// The steps of a sign-in by OpenID Connect, which programs take by themselves: the credential, and the second factors.
//
// A step names the request that it belongs to, and leads on to the next one: 302 to the way back if nothing is pending.

import { signInOverError } from '../../../src/authentication/api-sessions/stored-requests.ts'
import type { TokenFault } from '../../../src/authentication/openid-connect/access-tokens.ts'
import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import { describePendingFactors } from '../../../src/authentication/openid-connect/pending-factors.ts'
import {
  findPendingFactors,
  passTotp,
  signInToRequest,
} from '../../../src/authentication/openid-connect/request-sign-in.ts'
import {
  type Method,
  type SignInRefusalReason,
  SignInRefusedError,
} from '../../../src/authentication/sign-in/authentication-methods.ts'
import { ControllerError, errors } from '../../../src/foundation/errors.ts'
import { signerChallenge } from '../../api/challenges.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { redirect } from './authorize.ts'
import { findOwnRequest } from './browsers.ts'
import { COMMON, getRemoteAddress, NO_STORE, textQuery } from './forms.ts'
import { type CodeBody, codeBody, type LoginBody, loginBody } from './login-bodies.ts'

export const LOGIN = {
  ...COMMON,
  access: { public: 'it is how a caller becomes known' },
  query: textQuery(['authRequestID', 'id']),
  returns: { kind: 'raw', contentType: 'application/json' },
  hasOneForm: true,
  errorForm: 'bare',
} as const

/**
 * @param follows whether a step before this one may have been taken at another controller just now
 * @throws NOT_FOUND for another host, UNAUTHORIZED if there is no such request
 */
export async function requireRequest(
  call: Call<{ readonly id?: string } | undefined>,
  follows: boolean,
): Promise<PendingAuthorization> {
  const { body, query } = call
  const id = body?.id ?? query.authRequestID ?? query.id
  const request = await findOwnRequest(call, String(id ?? ''), follows)
  if (!request) throw signInOverError()
  return request
}

/** The response to a step: where the client goes on, or what is pending. */
export function respondToStep(
  call: Pick<Call, 'bearerTokens' | 'controller'>,
  request: PendingAuthorization,
): Response {
  const { controller } = call
  const pending = findPendingFactors(controller, request)
  // The session may have ended meanwhile; the way back says so.
  if (pending === undefined || pending === 'primary')
    return redirect(`${request.issuer}/authorize/callback?id=${request.id}`)
  return {
    status: 200,
    contentType: 'application/json',
    body: JSON.stringify({ authQueries: describePendingFactors(controller, request, pending) }),
    headers: {
      ...NO_STORE,
      ...(pending.totp ? { 'totp-required': 'true' } : {}),
      ...challengeSigner(call, pending.signer),
    },
  }
}

/** The challenge for the token of a signer that is pending. */
function challengeSigner(
  { bearerTokens, controller }: Pick<Call, 'bearerTokens' | 'controller'>,
  id: string | undefined,
): Record<string, string> {
  const signer = id === undefined ? undefined : controller.auth.signers.directory.get(id)
  const fault = bearerTokens.length === 0 ? 'missing' : 'invalid'
  const challenge = signer && signerChallenge('secondary', fault, [signer])
  return challenge === undefined ? {} : { 'www-authenticate': challenge }
}

const TOKEN_FAULTS: Partial<Readonly<Record<SignInRefusalReason, TokenFault>>> = {
  EXPIRED_TOKEN: 'expired',
  NO_TOKEN: 'missing',
  MALFORMED_TOKEN: 'missing',
  UNKNOWN_CREDENTIAL: 'missing',
}

/** The refusal of a token of a signer, which says what would be accepted. */
function refuseToken({ controller }: Pick<Call, 'controller'>, { reason }: SignInRefusedError): Response {
  const signers = [...controller.auth.signers.directory.all()].filter(({ enabled }) => enabled)
  const challenge = signerChallenge('primary', TOKEN_FAULTS[reason] ?? 'invalid', signers)
  const { code, message } = errors.UNAUTHORIZED()
  return {
    status: 401,
    contentType: 'application/json',
    body: JSON.stringify({ code, message }),
    headers: { ...NO_STORE, ...(challenge === undefined ? {} : { 'www-authenticate': challenge }) },
  }
}

function signInBy(method: Method) {
  return async (call: Call<LoginBody>): Promise<Response> => {
    const { bearerTokens, body, context, controller, peer } = call
    const request = await requireRequest(call, false)
    const { configTypes, csrPem: csr, envInfo, password, sdkInfo, username } = body
    const credentials = { peer, bearerTokens, ...(username ? { username } : {}), ...(password ? { password } : {}) }
    const reported = {
      csr,
      remoteAddress: getRemoteAddress(call),
      ...(configTypes ? { configTypes } : {}),
      ...(envInfo ? { envInfo } : {}),
      ...(sdkInfo ? { sdkInfo } : {}),
    }
    try {
      return respondToStep(call, await signInToRequest(controller, context, request, method, credentials, reported))
    } catch (error) {
      if (method === 'ext-jwt' && error instanceof SignInRefusedError) return refuseToken(call, error)
      throw error
    }
  }
}

/** Wrong codes have a code of their own here, because clients tell them apart by it. */
function toCodeError(error: unknown): unknown {
  const isWrong = error instanceof ControllerError && ['MFA_INVALID_TOKEN', 'MFA_NOT_ENROLLED'].includes(error.code)
  return isWrong ? errors.INVALID_TOTP_CODE(undefined, { cause: error.cause }) : error
}

/** The text that a page tells a program: it has to send the credential. */
async function showPage(call: Call<undefined>): Promise<Response> {
  const { id } = await requireRequest(call, false)
  const headers = { ...NO_STORE, 'auth-request-id': id }
  return { status: 200, contentType: 'text/plain', body: 'Send the credential to this path by POST.\n', headers }
}

const PAGES = [
  { name: 'Username', paths: ['username', 'password'], method: 'password' },
  { name: 'Cert', paths: ['cert'], method: 'cert' },
  { name: 'ExtJwt', paths: ['ext-jwt'], method: 'ext-jwt' },
] as const

export const loginOperations: readonly AnyOperation[] = [
  ...PAGES.flatMap(({ name, paths, method }) => {
    const atRoot = paths.map((path) => `/oidc/login/${path}`)
    return [
      defineOperation({
        ...LOGIN,
        id: `show${name}Login`,
        atRoot,
        method: 'GET',
        summary: 'The page on which a sign-in takes the credential.',
        returns: { kind: 'raw', contentType: 'text/plain' },
        run: showPage,
      }),
      defineOperation<LoginBody>({
        ...LOGIN,
        id: `loginBy${name}`,
        atRoot,
        method: 'POST',
        summary: `Takes the credential of a sign-in: ${method}.`,
        body: loginBody,
        run: signInBy(method),
      }),
    ]
  }),
  defineOperation<CodeBody>({
    ...LOGIN,
    id: 'loginByTotp',
    atRoot: ['/oidc/login/totp'],
    method: 'POST',
    summary: 'Takes a code of the second factor, or a recovery code.',
    body: codeBody,
    async run(call) {
      const request = await requireRequest(call, true)
      try {
        await passTotp(call.controller, call.context, request, call.body.code ?? '')
      } catch (error) {
        throw toCodeError(error)
      }
      return respondToStep(call, request)
    },
  }),
  defineOperation({
    ...LOGIN,
    id: 'listPendingFactors',
    atRoot: ['/oidc/login/auth-queries'],
    method: 'GET',
    summary: 'The second factors that a sign-in still owes.',
    query: textQuery(['id']),
    async run(call) {
      const request = await requireRequest(call, true)
      const pending = findPendingFactors(call.controller, request)
      const authQueries =
        pending === undefined || pending === 'primary'
          ? null
          : describePendingFactors(call.controller, request, pending)
      return { status: 200, contentType: 'application/json', body: JSON.stringify({ authQueries }), headers: NO_STORE }
    },
  }),
]
