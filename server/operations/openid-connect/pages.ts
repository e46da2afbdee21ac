// Shows pages to browsers at the paths where programs take the steps of a sign-in.

import { findMfa, isVisible } from '../../../src/authentication/mfa/mfa-records.ts'
import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import { OAuthError } from '../../../src/authentication/openid-connect/oauth-error.ts'
import {
  createSessionContext,
  findPendingFactors,
  findSession,
  toOwner,
} from '../../../src/authentication/openid-connect/request-sign-in.ts'
import { ControllerError } from '../../../src/foundation/errors.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import type { Response } from '../../api/responses.ts'
import { Html } from '../../pages/html.ts'
import { type HtmlPage, respondWithPage, toFormTargets } from '../../pages/page.ts'
import {
  type Choices,
  certificatePage,
  endPage,
  enrollPage,
  passwordPage,
  type SignerChoice,
  type SignInView,
  signerFactorPage,
  totpPage,
  verifyPage,
} from '../../pages/sign-in-pages.ts'
import { redirect } from './authorize.ts'
import { claimRequest, isBrowser } from './browsers.ts'
import { COMMON, textQuery } from './forms.ts'
import { requireRequest } from './login.ts'

type AnyCall = Call<{ readonly id?: string; readonly username?: string } | undefined>

/** The page of whatever a sign-in still owes. */
export const FACTOR_PATH = '/oidc/login/factor'

/** Shows a page of a request. One that a browser opens belongs to it from then on. */
function showPage(
  call: AnyCall,
  request: PendingAuthorization,
  problem: Problem | undefined,
  makePage: (view: SignInView) => HtmlPage,
): Response {
  const claim = call.operation.method === 'GET' ? claimRequest(call, request) : { request, headers: {} }
  const page = makePage(toView(claim.request, problem?.text))
  return respondWithPage({
    ...page,
    ...(problem ? { status: problem.status } : {}),
    headers: { ...claim.headers, 'auth-request-id': claim.request.id },
  })
}

function toView(request: PendingAuthorization, error?: string): SignInView {
  const { host } = new URL(request.issuer)
  return {
    requestId: request.id,
    host,
    destination: describeDestination(request.redirectUri),
    formTargets: toFormTargets(request.redirectUri),
    error,
  }
}

function describeDestination(redirectUri: string): string {
  // The settings accept wildcards in any place, and such text is compared as it is.
  if (!URL.canParse(redirectUri)) return redirectUri
  const { protocol, hostname, host } = new URL(redirectUri)
  if (protocol !== 'https:' && protocol !== 'http:') return 'the app that you came from'
  return ['127.0.0.1', 'localhost'].includes(hostname) ? 'the program on this computer that you came from' : host
}

function listChoices({ controller, peer }: AnyCall): Choices {
  const certificate = peer.own && peer.readOwn()
  const signers = [...controller.auth.signers.directory.all()].filter(
    ({ enabled, externalAuthUrl, clientId }) => enabled && externalAuthUrl !== null && clientId !== null,
  )
  return {
    certificateName: certificate && (readSubjectName(certificate.subject) ?? 'of this browser'),
    signers: signers.map(({ id, name }) => ({ id, name })),
  }
}

/** The common name in the subject of a certificate as Node.js writes it: a line for each attribute. */
function readSubjectName(subject: string): string | undefined {
  return /^CN=(.*)$/m.exec(subject)?.[1]
}

/** Shows the page of what a sign-in still owes; if that is nothing, the browser goes back to the client. */
export async function showNextStep(call: AnyCall, request: PendingAuthorization, problem?: Problem): Promise<Response> {
  const { controller, context } = call
  const pending = findPendingFactors(controller, request)
  const show = (makePage: (view: SignInView) => HtmlPage) => showPage(call, request, problem, makePage)
  if (pending === undefined) return redirect(`${request.issuer}/authorize/callback?id=${request.id}`)
  const session = findSession(controller, request)
  // A browser that opens no page of a sign-in but this one begins with it.
  if (pending === 'primary' || !session || isForeign(call, request))
    return show((view) => passwordPage(view, listChoices(call)))
  if (pending.totp && session.owesTotp) return show(totpPage)
  const { signer } = pending
  if (signer !== undefined) return show((view) => signerFactorPage(view, findSigner(call, signer)))
  const sessionContext = createSessionContext(controller, context, request, session)
  const enrollment = await findMfa(sessionContext, session.identity.id)
  if (!enrollment || enrollment.isVerified || !isVisible(enrollment, toOwner(session))) return show(enrollPage)
  const { mfaSecrets } = controller.auth
  const provisioningUrl = mfaSecrets.getProvisioningUrl(enrollment, session.identity.name)
  const { drawQrCodeAsSvg } = await import('../../responses/qr-code.ts')
  const setup = {
    qrCode: new Html(await drawQrCodeAsSvg(provisioningUrl)),
    secret: new URL(provisioningUrl).searchParams.get('secret') ?? '',
    recoveryCodes: mfaSecrets.decryptRecoveryCodes(enrollment),
  }
  return show((view) => verifyPage(view, setup))
}

/** Whether the page that is opened would ask a browser for a factor of a sign-in that was not made in it. */
function isForeign({ operation }: AnyCall, { browser }: PendingAuthorization): boolean {
  return operation.method === 'GET' && browser === undefined
}

/** A signer at whose issuer people sign in; undefined if it does not say where. */
function findSigner(call: AnyCall, id: string): SignerChoice | undefined {
  return listChoices(call).signers.find((signer) => signer.id === id)
}

/** The reason why a step failed, for a person. */
interface Problem {
  readonly text: string
  readonly status: number
}

const TEXTS: Readonly<Record<string, string>> = {
  COULD_NOT_VALIDATE: 'Something is missing, or too long. Fill in every field.',
  SERVER_TOO_MANY_REQUESTS: 'There were too many attempts. Wait a minute, then try again.',
  'INVALID TOTP CODE': 'The code is not right, or was used before. Enter the next one.',
  MFA_INVALID_TOKEN: 'The code is not right, or was used before. Enter the next one.',
  MFA_EXISTS: 'A second factor is set up already. Enter its code.',
  NOT_FOUND: 'There is no setup to complete. Begin it again.',
}

/** @param refusal the text for a credential that is not accepted @throws errors that no person can do anything about */
export function explain(error: unknown, refusal: string): Problem {
  if (!(error instanceof ControllerError) || error.status >= 500 || error.code === 'UNAUTHORIZED') throw error
  return { text: error.code === 'INVALID_AUTH' ? refusal : (TEXTS[error.code] ?? error.message), status: error.status }
}

type PageShower = (call: AnyCall, request: PendingAuthorization, problem?: Problem) => Response | Promise<Response>

const showPassword: PageShower = (call, request, problem) =>
  showPage(call, request, problem, (view) => passwordPage(view, listChoices(call), call.body?.username))

const showCertificate: PageShower = (call, request, problem) =>
  showPage(call, request, problem, (view) => certificatePage(view, listChoices(call)))

/** The pages of each operation, by its id: to begin with, or after a step that failed with this refusal. */
const PAGES: Readonly<Record<string, { readonly show: PageShower; readonly refusal: string }>> = {
  ...forMethod('Username', showPassword, 'The username or the password is not right, or you may not sign in this way.'),
  ...forMethod('Cert', showCertificate, 'The certificate is not accepted, or you may not sign in this way.'),
  ...forMethod('ExtJwt', showPassword, 'You cannot sign in this way with a browser.'),
  loginByTotp: { show: showNextStep, refusal: '' },
  enrollTotp: { show: showNextStep, refusal: '' },
  verifyTotpEnrollment: { show: showNextStep, refusal: '' },
}

function forMethod(name: string, show: PageShower, refusal: string) {
  return { [`show${name}Login`]: { show, refusal }, [`loginBy${name}`]: { show, refusal } }
}

/** The operation with pages for browsers; programs are sent what it returns. */
export function withPages(operation: AnyOperation): AnyOperation {
  const page = PAGES[operation.id]
  if (!page) return { ...operation, errorPage }
  return {
    ...operation,
    errorPage,
    async run(call) {
      if (!isBrowser(call.headers)) return operation.run(call)
      const request = await requireRequest(call, false)
      if (operation.method === 'GET') return page.show(call, request)
      try {
        const response = await operation.run(call)
        return response.status === 302 ? response : redirect(`${FACTOR_PATH}?id=${encodeURIComponent(request.id)}`)
      } catch (error) {
        const problem = explain(error, page.refusal)
        // The step may have ended the sign-in, or is one of another controller.
        return page.show(call, await requireRequest(call, true), problem)
      }
    },
  }
}

/** The pages for errors that have no other, with the title for what a program asks for and is refused. */
function makeErrorPage(refusedTitle: string): NonNullable<AnyOperation['errorPage']> {
  return (error, headers) => {
    if (!isBrowser(headers)) return undefined
    const { title, sentences } = describeEnd(error, refusedTitle)
    return respondWithPage(endPage(title, sentences, error.status))
  }
}

/** The sign-in cannot go on. */
export const errorPage = makeErrorPage('The sign-in cannot begin')

/** The session cannot be ended, or shown. */
export const sessionErrorPage = makeErrorPage('The request is refused')

function describeEnd(
  error: ControllerError | OAuthError,
  refusedTitle: string,
): { title: string; sentences: readonly string[] } {
  const again = 'Go back to the program or the page that you came from, and begin again.'
  if (error instanceof OAuthError) {
    const reason = `The program that sent you here asks for something that this controller refuses: ${error.message}.`
    return { title: refusedTitle, sentences: [reason, 'Tell the people who run the program.'] }
  }
  if (error.code === 'UNAUTHORIZED') {
    const reason =
      'Its time is over, it was completed, or it was begun in another browser. A sign-in takes at most ten minutes.'
    return { title: 'This sign-in is over', sentences: [reason, again] }
  }
  if (error.isTemporary)
    return { title: 'Too many requests', sentences: ['The controller is busy. Wait a minute, then try again.'] }
  if (error.status === 404) return { title: 'Nothing is here', sentences: [error.message] }
  return { title: 'The sign-in failed', sentences: [TEXTS[error.code] ?? error.message, again] }
}

export const pageOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'showNextFactor',
    atRoot: [FACTOR_PATH],
    method: 'GET',
    summary: 'The page of the second factor that a sign-in still owes.',
    access: { public: 'it is how a caller becomes known' },
    query: textQuery(['id']),
    returns: { kind: 'raw', contentType: 'text/html' },
    hasOneForm: true,
    errorForm: 'bare',
    errorPage,
    run: async (call) => showNextStep(call, await requireRequest(call, true)),
  }),
]
