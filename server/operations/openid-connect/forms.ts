// The requests of OpenID Connect: forms, and the parameters that a client may send in the query instead.

import { OAuthError } from '../../../src/authentication/openid-connect/oauth-error.ts'
import type { JsonSchema } from '../../../src/definitions/schema/json-schema.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { BodyReader, Call, QueryParameter } from '../../api/operation.ts'
import { repeatedError } from '../../api/query.ts'
import { FORM_TYPE } from '../../requests/body-parsers.ts'

const text: JsonSchema = { type: 'string' }

/** The members that all operations of the provider share. */
export const COMMON = {
  apis: [],
  listenerApi: 'oidc',
  topic: 'authentication',
  path: '/',
} as const

/** The parameters of a query, all of them text, and none of them repeated (RFC 6749, section 3.1). */
export function textQuery(names: readonly string[]): Record<string, QueryParameter> {
  return Object.fromEntries(names.map((name) => [name, { schema: text, isOnce: true }]))
}

// RFC 8693, section 2.1, for the last two.
const REPEATABLE: ReadonlySet<string> = new Set(['configTypes', 'audience', 'resource'])

/**
 * Of two values of a parameter, each reader could take another one.
 * @param unread a parameter that has no reader
 * @throws COULD_NOT_VALIDATE for a parameter that is repeated
 */
export function requireOnce(form: URLSearchParams, unread?: string): URLSearchParams {
  const names = new Set<string>()
  for (const [name, value] of form) {
    // One without a value counts as omitted.
    if (value === '' || name === unread || REPEATABLE.has(name)) continue
    if (names.has(name)) throw repeatedError(name)
    names.add(name)
  }
  return form
}

/** Reads a parameter that a client sends in the form or in the query. @throws OAuthError if it sends both */
export function readParameter(form: URLSearchParams, query: Call['query'], name: string): string | undefined {
  const [ofForm, ofQuery] = [form.get(name) || undefined, query[name] as string | undefined]
  if (ofForm !== undefined && ofQuery !== undefined)
    throw new OAuthError('invalid_request', `the ${name} is in the form and in the query`)
  return ofForm ?? ofQuery
}

/** A form. A body that is not sent is an empty one. */
export const formBody: BodyReader<URLSearchParams> = {
  schema: { type: 'object' },
  isRequired: false,
  contentTypes: [FORM_TYPE],
  read: (sent) => (sent instanceof URLSearchParams ? requireOnce(sent) : new URLSearchParams()),
}

/** A request for tokens, in which `state` means nothing: OpenZiti's C SDK sends it twice. */
export const tokenBody: BodyReader<URLSearchParams> = {
  ...formBody,
  read: (sent) => (sent instanceof URLSearchParams ? requireOnce(sent, 'state') : new URLSearchParams()),
}

/** The issuer for a request. @throws NOT_FOUND if its host is none of the controller's */
export function requireIssuer({ controller, headers, socket }: Call<unknown>): string {
  const issuer = controller.openIdConnect.issuers.find(String(headers.host ?? ''), socket.localPort)
  if (issuer === undefined) throw errors.NOT_FOUND({ message: 'this controller has no such host' })
  return issuer
}

/** Address and port of the client, as tokens name them. */
export function getRemoteAddress({ context, socket }: Call<unknown>): string {
  return `${context.origin.address}:${socket.remotePort ?? 0}`
}

/** Nothing of a sign-in may be stored by browsers and proxies (RFC 6749, section 5.1), or sent on as a referrer. */
export const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache', 'referrer-policy': 'no-referrer' } as const
