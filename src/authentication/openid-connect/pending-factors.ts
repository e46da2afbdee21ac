// The second factors that a sign-in by OpenID Connect still owes, in the form in which clients look for them.
import type { OutstandingFactors } from '../sign-in/second-factors.ts'
import type { Signers } from '../signers/signers.ts'
import type { PendingAuthorization } from './authorization-requests.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { findSession } from './request-sign-in.ts'

export function describePendingFactors(
  parts: OpenIdParts,
  request: PendingAuthorization,
  { totp, signer }: OutstandingFactors,
): object[] {
  const { auth } = parts
  const session = findSession(parts, request)
  return [
    ...(totp ? [describeTotp(session?.owesTotp === true)] : []),
    ...(signer === undefined ? [] : [describeSigner(signer, auth.signers.directory)]),
  ]
}

/** @param isEnrolled whether the identity has a factor; otherwise the client has to enroll one */
function describeTotp(isEnrolled: boolean): object {
  return {
    typeId: 'TOTP',
    provider: 'ziti',
    format: 'numeric',
    minLength: 6,
    maxLength: 8,
    httpMethod: 'POST',
    httpUrl: './oidc/login/totp',
    scopes: null,
    ...(isEnrolled ? { isTotpEnrolled: true } : {}),
  }
}

function describeSigner(id: string, signers: Signers): object {
  const { clientId, externalAuthUrl, scopes } = signers.get(id) ?? {}
  return { typeId: 'EXT-JWT', provider: 'url', id, clientId, httpUrl: externalAuthUrl, scopes }
}
