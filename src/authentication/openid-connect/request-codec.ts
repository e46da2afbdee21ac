// The form in which clients carry authorization requests and codes: short, because OpenZiti's C SDK has room for 232 characters of the id
// of a request.
import type { Instant } from '../../foundation/clock.ts'
import { NONCE_BYTES } from '../../foundation/sealed-bytes.ts'
import type { AuthorizationParameters } from './authorization-parameters.ts'
import type { SealedTexts } from './sealed-texts.ts'

/** An authorization request as its client began it, and the browser that was shown a page of it. */
export interface CarriedRequest extends Omit<AuthorizationParameters, 'isSilent'> {
  readonly beganAt: Instant
  readonly configTypes: readonly string[]
  /** The hash of the key of the browser that was shown a page of the request; no other client may go on with it. */
  readonly browser: string | undefined
}

/** A code: the session that it leads to, and since when. */
export interface CarriedCode {
  readonly apiSessionId: string
  readonly issuedAt: Instant
}

const TIME_BYTES = 6
const CHALLENGE_BYTES = 32
const BROWSER_BYTES = 32
/** The nonce of a sealed text, which names the request, as bytes and as base64url. */
const REQUEST_ID_BYTES = NONCE_BYTES
const REQUEST_ID_LENGTH = 16

const OPENZITI = 1
const OPENID = 2
const OFFLINE_ACCESS = 4
const HAS_BROWSER = 8

/** The parameters that vary in length, in this order. */
type Texts = readonly [redirectUri: string, state: string | null, nonce: string | null, configTypes: readonly string[]]

/** @param requestId that of the request before it was shown to a browser */
export function encodeRequest(texts: SealedTexts, request: CarriedRequest, requestId = ''): string {
  const { beganAt, browser, clientId, codeChallenge, configTypes, nonce, redirectUri, scopes, state } = request
  const flags = [
    clientId === 'openziti' ? OPENZITI : 0,
    scopes.includes('openid') ? OPENID : 0,
    scopes.includes('offline_access') ? OFFLINE_ACCESS : 0,
    browser === undefined ? 0 : HAS_BROWSER,
  ]
  const varying: Texts = [redirectUri, state ?? null, nonce ?? null, configTypes]
  const parts = [
    Buffer.from([flags.reduce((sum, flag) => sum | flag)]),
    toTimeBytes(beganAt),
    fromBase64(codeChallenge),
    ...(browser === undefined ? [] : [fromBase64(browser), fromBase64(requestId)]),
    Buffer.from(JSON.stringify(varying)),
  ]
  return texts.seal('request', Buffer.concat(parts))
}

/** Returns the request of an id, and the name that it has in all its forms; undefined if no controller of this network made the id. */
export function decodeRequest(
  texts: SealedTexts,
  id: string,
): (CarriedRequest & { readonly requestId: string }) | undefined {
  const content = texts.open('request', id)
  if (!content) return undefined
  let at = 1
  const take = (length: number) => {
    at += length
    return content.subarray(at - length, at)
  }
  const flags = content.readUInt8()
  const beganAt = readTime(take(TIME_BYTES))
  const codeChallenge = take(CHALLENGE_BYTES).toString('base64url')
  const hasBrowser = (flags & HAS_BROWSER) !== 0
  const browser = hasBrowser ? take(BROWSER_BYTES).toString('base64url') : undefined
  const requestId = hasBrowser ? take(REQUEST_ID_BYTES).toString('base64url') : id.slice(0, REQUEST_ID_LENGTH)
  const [redirectUri, state, nonce, configTypes] = JSON.parse(content.toString('utf8', at)) as Texts
  return {
    ...{ requestId, beganAt, browser, codeChallenge, configTypes, redirectUri },
    clientId: (flags & OPENZITI) === 0 ? 'native' : 'openziti',
    scopes: [
      ...((flags & OPENID) === 0 ? [] : (['openid'] as const)),
      ...((flags & OFFLINE_ACCESS) === 0 ? [] : (['offline_access'] as const)),
    ],
    state: state ?? undefined,
    nonce: nonce ?? undefined,
  }
}

export function encodeCode(texts: SealedTexts, { apiSessionId, issuedAt }: CarriedCode): string {
  return texts.seal('code', Buffer.concat([toTimeBytes(issuedAt), Buffer.from(apiSessionId)]))
}

/** Returns undefined if no controller of this network issued the code. */
export function decodeCode(texts: SealedTexts, code: string): CarriedCode | undefined {
  const content = texts.open('code', code)
  return content && { issuedAt: readTime(content), apiSessionId: content.toString('utf8', TIME_BYTES) }
}

function toTimeBytes(time: Instant): Buffer {
  const bytes = Buffer.alloc(TIME_BYTES)
  bytes.writeUIntBE(time, 0, TIME_BYTES)
  return bytes
}

const readTime = (bytes: Buffer): Instant => bytes.readUIntBE(0, TIME_BYTES)
const fromBase64 = (text: string) => Buffer.from(text, 'base64url')
