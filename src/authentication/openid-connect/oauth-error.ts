// The errors of OAuth 2.0 (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7009; OpenID Connect Core, section 3.1.2.6).

type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'request_not_supported'
  | 'access_denied'

/** A client's mistake at an endpoint of OAuth. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthErrorCode
  readonly status: number

  /** @param description for the developer of the client; it never contains what the client sent */
  constructor(code: OAuthErrorCode, description: string, status = 400) {
    super(description)
    this.code = code
    this.status = status
  }
}
