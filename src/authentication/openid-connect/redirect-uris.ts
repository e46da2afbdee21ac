// The URIs that an authorization response may be sent to. Any other could deliver the code of a sign-in to a stranger.
//
// The URI is matched as text. A parser would accept many spellings of one URI, and browsers disagree about some of them.

/** The application that is registered for this scheme. */
const APP_CALLBACK = 'openziti://auth/callback'

/** A program on the machine of the user, which listens on any port (RFC 8252, section 7.3). */
const LOOPBACK_CALLBACK = /^https?:\/\/(?:127\.0\.0\.1|localhost):([1-9]\d{0,4})\/auth\/callback$/

const MAX_PORT = 65_535

/** @param configured those of the settings, which count only as they are written */
export function isRedirectUriAllowed(uri: string, configured: readonly string[]): boolean {
  if (uri === APP_CALLBACK || configured.includes(uri)) return true
  const [, port] = LOOPBACK_CALLBACK.exec(uri) ?? []
  return port !== undefined && Number(port) <= MAX_PORT
}

/** Appends parameters to a URI, in their order. Clients expect the code first. */
export function appendParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${encodeURIComponent(value)}`,
  )
  return pairs.length === 0 ? uri : `${uri}${uri.includes('?') ? '&' : '?'}${pairs.join('&')}`
}
