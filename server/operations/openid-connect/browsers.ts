// Tells browsers, which are shown pages, from programs, and ties a sign-in to the browser that was shown its pages.
//
// The id of a request is in addresses, so a stranger could begin a sign-in, have a person complete it by a link, and take the code.
// From its first page on a request therefore goes on only with the cookie of that browser, under another id; who has the id of before
// has no part in what that browser signs in to.
//
// Before that, a page of a stranger could take a step of his own request in the browser of its visitor, which presents the certificate
// of the visitor to whatever address it is sent to. Such steps are refused by the origin that browsers name.
import { hash, randomBytes } from 'node:crypto'
import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import { findPendingFactors } from '../../../src/authentication/openid-connect/request-sign-in.ts'
import { isEqualInConstantTime } from '../../../src/foundation/constant-time.ts'
import type { Call } from '../../api/operation.ts'
import { requireIssuer } from './forms.ts'

// The prefix keeps other hosts from setting it. Clients other than browsers never receive it.
const COOKIE = '__Host-sign-in'
const KEY_PATTERN = /^[\w-]{43}$/

// One for each sign-in, because a browser may have several under way.
const EXTERNAL_COOKIE = '__Host-external-'
const MAX_EXTERNAL_SECONDS = 600
// Browsers drop a cookie whose name and value are longer.
const MAX_COOKIE_BYTES = 4_096
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'

type Headers = Call['headers']

/** Whether a client prefers HTML to JSON; one that accepts anything does not. */
export function isBrowser(headers: Headers): boolean {
  const types = String(headers.accept ?? '')
    .split(',')
    .map((entry) => {
      const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
      return { type, quality: quality === undefined ? 1 : Number(quality) || 0 }
    })
    .sort((a, b) => b.quality - a.quality)
  return types.find(({ type }) => type === 'text/html' || type === 'application/json')?.type === 'text/html'
}

/**
 * Returns a request that is under way, unless it belongs to another browser, or a page of a foreign origin goes on with it.
 * @param follows whether a step before this one may have been taken at another controller just now
 */
export async function findOwnRequest(
  call: Call<unknown>,
  id: string,
  follows: boolean,
): Promise<PendingAuthorization | undefined> {
  const { controller } = call
  const { requests } = controller.openIdConnect
  const own = keepOwn(call, await requests.find(id, requireIssuer(call)))
  if (!own || !follows || findPendingFactors(controller, own) === undefined) return own
  return keepOwn(call, await requests.follow(own))
}

function keepOwn(
  { controller, headers }: Call<unknown>,
  request: PendingAuthorization | undefined,
): PendingAuthorization | undefined {
  return request && isOwn(request, headers, controller.config['cors.origins']) ? request : undefined
}

function isOwn({ browser, issuer }: PendingAuthorization, headers: Headers, origins: readonly string[]): boolean {
  // The pages of the controller itself send the origin `null`, because they send no referrer.
  if (browser === undefined) return isOwnOrigin(headers, [...origins, new URL(issuer).origin])
  const key = readKey(headers)
  return key !== undefined && isEqualInConstantTime(hashKey(key), browser)
}

/** Programs name no origin; browsers name it with whatever may change something. */
function isOwnOrigin({ origin }: Headers, origins: readonly string[]): boolean {
  return origin === undefined || origins.includes(String(origin))
}

/** Ties a request to a browser that is sent a page. Returns the request of that browser, and the headers of the page. */
export function claimRequest(
  { controller, headers }: Pick<Call<unknown>, 'controller' | 'headers'>,
  request: PendingAuthorization,
): { readonly request: PendingAuthorization; readonly headers: Readonly<Record<string, string>> } {
  if (request.browser !== undefined) return { request, headers: {} }
  const key = readKey(headers) ?? randomBytes(32).toString('base64url')
  return {
    request: controller.openIdConnect.requests.claim(request, hashKey(key)),
    headers: { 'set-cookie': `${COOKIE}=${key}; ${ATTRIBUTES}` },
  }
}

/** Whether a browser keeps a sealed text of this length on its way to the issuer of a signer and back. */
export function fitsExternalCookie(requestId: string, sealed: string): boolean {
  return EXTERNAL_COOKIE.length + requestId.length + sealed.length <= MAX_COOKIE_BYTES
}

/** The header that has a browser keep a sealed text on its way to the issuer of a signer and back; without a text, that it drops it. */
export function setExternalCookie(requestId: string, sealed = ''): Readonly<Record<string, string>> {
  const maxAge = sealed === '' ? 0 : MAX_EXTERNAL_SECONDS
  return { 'set-cookie': `${EXTERNAL_COOKIE}${requestId}=${sealed}; ${ATTRIBUTES}; Max-Age=${maxAge}` }
}

export function readExternalCookie(headers: Headers, requestId: string): string | undefined {
  return readCookie(headers, EXTERNAL_COOKIE + requestId)
}

function readKey(headers: Headers): string | undefined {
  const key = readCookie(headers, COOKIE)
  return key !== undefined && KEY_PATTERN.test(key) ? key : undefined
}

function readCookie({ cookie }: Headers, name: string): string | undefined {
  const pairs = String(cookie ?? '').split(/; ?/)
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

const hashKey = (key: string) => hash('sha256', key, 'base64url')
