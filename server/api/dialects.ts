// The two dialects of the API: that of the documents (`native`) and that of OpenZiti clients. All vendor words live here.
import type { IncomingHttpHeaders } from 'node:http'
import type { TotpWords } from '../../src/authentication/api-sessions/api-session-behavior.ts'
import type { BodyTolerance } from '../../src/definitions/schema/bodies.ts'
import type { JsonForm } from '../../src/definitions/schema/json-forms.ts'
import type { ControllerError } from '../../src/foundation/errors.ts'
import { isUuid } from '../../src/foundation/ids.ts'
import { version } from '../../src/foundation/version.ts'
import type { Api, Dialect } from '../../src/settings/listener-settings.ts'
import { CONTENT_HEADERS } from './responses.ts'

/** The session header of each dialect: sent by clients, and returned, both of them, by a sign-in. */
export const SESSION_HEADERS = { native: 'net-session', openziti: 'zt-session' } as const

/** The prefix of the names of OpenZiti client libraries. */
const CLIENT_PREFIX = 'ziti'

/** Returns the session token of a request and the dialect of its header; a token that is not a UUID counts as absent. */
export function readSessionHeader(headers: IncomingHttpHeaders): {
  dialect: Dialect | undefined
  token: string | undefined
} {
  for (const dialect of ['openziti', 'native'] as const) {
    const value = headers[SESSION_HEADERS[dialect]]
    if (typeof value === 'string' && value !== '') return { dialect, token: isUuid(value) ? value : undefined }
  }
  return { dialect: undefined, token: undefined }
}

/** The dialect of a sign-in: by its session header like any request, else by what the client reports of itself. */
export function detectSignInDialect(
  headers: IncomingHttpHeaders,
  sdkInfo: Readonly<Record<string, unknown>> | undefined,
  fallback: Dialect,
): Dialect {
  const type = sdkInfo?.type
  const isPeer = typeof type === 'string' && type.startsWith(CLIENT_PREFIX)
  return readSessionHeader(headers).dialect ?? (isPeer ? 'openziti' : fallback)
}

/** The headers of a sign-in's response: the token under both names. */
export function makeSessionHeaders(token: string): Record<string, string> {
  return { [SESSION_HEADERS.native]: token, [SESSION_HEADERS.openziti]: token }
}

/** The headers of the response to a sign-in by a certificate, whose holder may be asked to extend it. */
export function makeExtensionHeaders(dialect: Dialect, isExtendRequested: boolean): Record<string, string> {
  return dialect === 'openziti' && isExtendRequested ? { 'ziti-authenticator-extend-requested': 'true' } : {}
}

/** How each dialect calls the second factor of the controller's own, and the form of its codes. */
export const TOTP_QUERY_WORDS = {
  native: { provider: 'native', format: 'numeric' },
  openziti: { provider: 'ziti', format: 'alphaNumeric' },
} as const satisfies Record<Dialect, TotpWords>

/** The form of JSON that each dialect has. */
export const JSON_FORMS = { native: 'documented', openziti: 'compatible' } as const satisfies Record<Dialect, JsonForm>

/** The statuses that OpenZiti clients expect, by error code, if they differ from those of the documents. */
const OPENZITI_STATUSES: Readonly<Record<string, number>> = { MFA_INVALID_TOKEN: 400 }

/** Returns the status of an error in a dialect. */
export function toDialectStatus({ code, status }: ControllerError, dialect: Dialect | undefined): number {
  return dialect === 'openziti' ? (OPENZITI_STATUSES[code] ?? status) : status
}

/**
 * How far a body may differ from its schema. OpenZiti clients write member names in any case, and null or empty text for
 * absent members. A client without a session may do some of this too, because its dialect is not known yet.
 */
export function bodyTolerance(dialect: Dialect, api: Api | undefined, isPublic: boolean): Required<BodyTolerance> {
  const isStrict = dialect === 'native' && !isPublic
  return {
    unknownMembers: isStrict && api === 'management' ? 'refuse' : 'ignore',
    ignoredMembers: [],
    memberCase: dialect === 'native' ? 'exact' : 'any',
    undeclaredNulls: isStrict ? 'refuse' : 'ignore',
    blankChoices: dialect === 'native' ? 'refuse' : 'default',
  }
}

/** The audience of the JWTs by which clients trust a network. */
export const ENROLLER_AUDIENCE = 'openziti-enroller'

/** The headers that every response of a controller has, by dialect. */
export function describeResponseHeaders(instanceId: string): Readonly<Record<Dialect, Record<string, string>>> {
  return {
    native: { ...CONTENT_HEADERS, server: `edge-controller/${version.version}` },
    openziti: { ...CONTENT_HEADERS, server: `ziti-controller/${version.version}`, 'ziti-instance-id': instanceId },
  }
}
