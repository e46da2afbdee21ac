// Signing in with a browser at the issuer of an external signer: the way there, and the way back.

import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import { readRequestId } from '../../../src/authentication/openid-connect/external-authorization.ts'
import { addExternalToken, signInToRequest } from '../../../src/authentication/openid-connect/request-sign-in.ts'
import type { Signer } from '../../../src/authentication/signers/signers.ts'
import { OutboundError } from '../../../src/client/outbound-client.ts'
import { ControllerError, errors } from '../../../src/foundation/errors.ts'
import { sourceFromAddress } from '../../../src/storage/sources.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { redirect } from './authorize.ts'
import { findOwnRequest, fitsExternalCookie, readExternalCookie, setExternalCookie } from './browsers.ts'
import { COMMON, getRemoteAddress, textQuery } from './forms.ts'
import { errorPage, explain, showNextStep } from './pages.ts'

type PageCall = Call<undefined>

const EXTERNAL = {
  ...COMMON,
  method: 'GET',
  access: { public: 'it is how a caller becomes known' },
  returns: { kind: 'raw', contentType: 'text/html' },
  hasOneForm: true,
  errorForm: 'bare',
  errorPage,
} as const

/** Only a browser that was shown a page of the request goes this way. @throws UNAUTHORIZED */
async function requireBrowserRequest(call: PageCall, id: string): Promise<PendingAuthorization> {
  const request = await findOwnRequest(call, id, true)
  if (request?.browser === undefined) throw errors.UNAUTHORIZED({ message: 'there is no such sign-in' })
  return request
}

/** @throws NOT_FOUND if people cannot sign in at its issuer */
function requireSigner({ controller }: PageCall, id: string): Signer {
  const signer = controller.auth.signers.directory.get(id)
  if (!signer?.enabled || signer.externalAuthUrl === null || signer.clientId === null)
    throw errors.NOT_FOUND({ message: 'there is no such way to sign in' })
  return signer
}

/** Takes a step; if it fails, shows the page that the browser came from, with the reason. */
async function showFailure(
  call: PageCall,
  request: PendingAuthorization,
  { name }: Signer,
  take: () => Promise<Response>,
): Promise<Response> {
  try {
    return await take()
  } catch (error) {
    if (error instanceof OutboundError) {
      call.controller.aggregatedLog.warn(name, { err: error, signer: name }, 'a browser could not sign in at an issuer')
      const text = `${name} does not respond as it should. Try again later, or sign in another way.`
      return showNextStep(call, request, { text, status: 401 })
    }
    if (error instanceof ControllerError && error.code === 'UNAUTHORIZED') throw error
    const refusal = `${name} signed you in, but this controller has no identity for that account, or it may not sign in this way.`
    return showNextStep(call, request, explain(error, refusal))
  }
}

async function comeBack(call: PageCall): Promise<Response> {
  const { controller, context, headers, peer, query } = call
  const { code, iss, state = '' } = query as Readonly<Record<string, string | undefined>>
  const requestId = readRequestId(state)
  const { externalAuthorizations } = controller.openIdConnect
  const external = externalAuthorizations.open(readExternalCookie(headers, requestId) ?? '')
  const request = await requireBrowserRequest(call, external?.id ?? '')
  const signer = requireSigner(call, external?.signerId ?? '')
  const response = await showFailure(call, request, signer, async () => {
    const returned = { code, issuer: iss, state, source: readSource(call) }
    const token = external && (await externalAuthorizations.complete(external, signer, returned))
    if (token === undefined)
      return showNextStep(call, request, { text: `${signer.name} did not sign you in.`, status: 401 })
    const proven = await addExternalToken(controller, context, request, token)
    if (proven) return showNextStep(call, proven)
    const credentials = { peer, bearerTokens: [token] }
    const reported = { remoteAddress: getRemoteAddress(call) }
    return showNextStep(call, await signInToRequest(controller, context, request, 'ext-jwt', credentials, reported))
  })
  // It is good for one way back.
  return { ...response, headers: { ...response.headers, ...setExternalCookie(requestId) } }
}

/** The address of the browser, in the form in which limits tell it from others. */
function readSource({ context }: PageCall): string {
  return sourceFromAddress(context.origin.address ?? '')
}

export const externalLoginOperations: readonly AnyOperation[] = [
  defineOperation({
    ...EXTERNAL,
    id: 'beginExternalLogin',
    atRoot: ['/oidc/login/external'],
    summary: 'Sends a browser to the issuer of an external signer.',
    query: textQuery(['id', 'signer']),
    async run(call) {
      const request = await requireBrowserRequest(call, String(call.query.id ?? ''))
      const signer = requireSigner(call, String(call.query.signer ?? ''))
      const { externalAuthorizations } = call.controller.openIdConnect
      return showFailure(call, request, signer, async () => {
        const { url, sealed } = await externalAuthorizations.begin(request, signer, readSource(call))
        if (!fitsExternalCookie(request.requestId, sealed)) {
          const text = `The program that sent you here asks for too much to sign in with ${signer.name}. Sign in another way.`
          return showNextStep(call, request, { text, status: 400 })
        }
        const response = redirect(url)
        return { ...response, headers: { ...response.headers, ...setExternalCookie(request.requestId, sealed) } }
      })
    },
  }),
  defineOperation({
    ...EXTERNAL,
    id: 'finishExternalLogin',
    atRoot: ['/oidc/login/external/callback'],
    summary: 'Takes a browser back from the issuer of an external signer.',
    query: textQuery(['code', 'state', 'iss', 'error', 'error_description', 'session_state']),
    run: comeBack,
  }),
]
