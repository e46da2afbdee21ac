// Tells browsers, which are shown pages, from programs, and ties a sign-in to the browser that was shown its pages.
//
// The id of a request is in addresses, so a stranger could begin a sign-in, have a person complete it by a link, and take the code.
// From its first page on a request therefore goes on only with the cookie of that browser.
//
// Before that, a page of a stranger could take a step of his own request in the browser of its visitor, which presents the certificate
// of the visitor to whatever address it is sent to. Such steps are refused by the origin that browsers name.
import { hash, randomBytes } from 'node:crypto'
import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import { isEqualInConstantTime } from '../../../src/foundation/constant-time.ts'
import type { Call } from '../../api/operation.ts'

// The prefix keeps other hosts from setting it. Clients other than browsers never receive it.
const COOKIE = '__Host-sign-in'
const KEY_PATTERN = new RegExp(`(?:^|; ?)${COOKIE}=([\\w-]{43})(?:;|$)`)

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

/** Returns a request that is under way, unless it belongs to another browser, or a page of a foreign origin goes on with it. */
export function findOwnRequest(
  { controller, headers }: Pick<Call<unknown>, 'controller' | 'headers'>,
  id: string,
): PendingAuthorization | undefined {
  const { config, openIdConnect } = controller
  const request = openIdConnect.requests.find(id)
  return request && isOwn(request, headers, config['cors.origins']) ? request : undefined
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

/** Ties a request to a browser that is sent a page. Returns the headers of that page. */
export function claimRequest(request: PendingAuthorization, headers: Headers): Readonly<Record<string, string>> {
  if (request.browser !== undefined) return {}
  const key = readKey(headers) ?? randomBytes(32).toString('base64url')
  request.browser = hashKey(key)
  return { 'set-cookie': `${COOKIE}=${key}; Path=/; Secure; HttpOnly; SameSite=Lax` }
}

function readKey({ cookie }: Headers): string | undefined {
  return KEY_PATTERN.exec(String(cookie ?? ''))?.[1]
}

const hashKey = (key: string) => hash('sha256', key, 'base64url')
