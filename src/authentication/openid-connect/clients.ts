// The clients of OpenID Connect: public ones, known to every client library of the network. Neither has a secret.

export const CLIENT_IDS = ['openziti', 'native'] as const
export type ClientId = (typeof CLIENT_IDS)[number]

export function isClientId(text: string): text is ClientId {
  return (CLIENT_IDS as readonly string[]).includes(text)
}

/** The scopes with an effect: claims of the identity in the ID token, and a refresh token. Others are dropped. */
const SCOPES = ['openid', 'offline_access'] as const
export type GrantedScope = (typeof SCOPES)[number]

/** The scopes of a request that have an effect, in the order sent. */
export function parseScopes(text: string): GrantedScope[] {
  return [...new Set(text.split(' '))].filter((scope): scope is GrantedScope =>
    (SCOPES as readonly string[]).includes(scope),
  )
}
