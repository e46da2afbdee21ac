// The documents that clients read before they sign in: endpoints (OpenID Connect Discovery, section 3), and keys (RFC 7517).
import type { X509Certificate } from 'node:crypto'
import { computeFingerprint } from '../../pki/certificates.ts'

/** The login paths below the issuer, by the name that the discovery document has for them. */
export const LOGIN_PATHS = {
  password: '/login/password',
  cert: '/login/cert',
  ext_jwt: '/login/ext-jwt',
  totp: '/login/totp',
  totp_enroll: '/login/totp/enroll',
  totp_enroll_verify: '/login/totp/enroll/verify',
  auth_queries: '/login/auth-queries',
} as const

export function describeProvider(issuer: string): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    revocation_endpoint: `${issuer}/revoke`,
    end_session_endpoint: `${issuer}/end_session`,
    jwks_uri: `${issuer}/keys`,
    scopes_supported: ['openid', 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:token-exchange'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
    revocation_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
    introspection_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
    claims_supported: [
      'sub',
      'aud',
      'exp',
      'iat',
      'iss',
      'auth_time',
      'nonce',
      'amr',
      'at_hash',
      'c_hash',
      'azp',
      'name',
    ],
    code_challenge_methods_supported: ['S256'],
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    openziti_endpoints: Object.fromEntries(
      Object.entries(LOGIN_PATHS).map(([name, path]) => [name, `${issuer}${path}`]),
    ),
  }
}

/** The keys by which tokens are verified, as a key set. */
export function describeKeys(certificates: readonly X509Certificate[]): Record<string, unknown> {
  return {
    keys: certificates.map((certificate) => ({
      ...certificate.publicKey.export({ format: 'jwk' }),
      use: 'sig',
      alg: 'ES256',
      kid: computeFingerprint(certificate),
    })),
  }
}
