// The token by which a client shows routers that it has just passed its second factor: they judge posture themselves.
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { newToken } from '../../foundation/ids.ts'
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { MfaOwner } from '../mfa/mfa-secrets.ts'
import { passMfa } from '../mfa/own-mfa.ts'
import { toSeconds } from './claims.ts'
import type { OpenIdParts } from './open-id-parts.ts'

/**
 * Passes the second factor by a code of the app. The token never expires, because its age is what a router judges; it is of no use
 * without the access token of the same session.
 * @throws INVALID_BACKING_TOKEN_TYPE, MFA_NOT_ENROLLED, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function issueTotpToken(
  parts: OpenIdParts,
  context: Context,
  owner: MfaOwner,
  code: string,
): Promise<{ readonly token: string; readonly issuedAt: string }> {
  const { auth, clock, config, tokenKeys } = parts
  const clientId = auth.apiSessions.get(owner.apiSessionId)?.clientId
  if (!clientId) throw errors.INVALID_BACKING_TOKEN_TYPE()
  await passMfa(parts, context, owner, code, 'totp')
  const issuedAt: Instant = clock.now()
  const token = await tokenKeys.sign({
    iss: `https://${getAdvertisedAddress(config)}`,
    sub: owner.identityId,
    aud: [clientId],
    iat: toSeconds(issuedAt),
    jti: newToken(),
    z_asid: owner.apiSessionId,
    z_t: 't',
  })
  return { token, issuedAt: toIsoTime(issuedAt) }
}
