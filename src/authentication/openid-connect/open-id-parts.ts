// The parts of the controller that OpenID Connect uses, and its own.
import type { Clock } from '../../foundation/clock.ts'
import type { Authority } from '../../pki/authority.ts'
import type { Config } from '../../settings/config.ts'
import type { ExtensionRequests } from '../credentials/extension-requests.ts'
import type { MfaParts } from '../mfa/mfa-records.ts'
import type { SignInParts } from '../sign-in/sign-in-attempt.ts'
import type { TokenKeys } from '../tokens/token-keys.ts'
import type { WriteLimits } from '../write-limits.ts'
import { VerifiedAccessTokens } from './access-tokens.ts'
import { AuthorizationRequests } from './authorization-requests.ts'
import { ExternalAuthorizations } from './external-authorization.ts'
import { Issuers } from './issuers.ts'
import { RevokedTokens } from './revoked-tokens.ts'

export interface OpenIdConnect {
  readonly issuers: Issuers
  readonly requests: AuthorizationRequests
  readonly accessTokens: VerifiedAccessTokens
  readonly externalAuthorizations: ExternalAuthorizations
  readonly revokedTokens: RevokedTokens
}

export interface OpenIdParts extends SignInParts, MfaParts {
  readonly auth: SignInParts['auth'] &
    MfaParts['auth'] & { readonly extensionRequests: ExtensionRequests; readonly writeLimits: WriteLimits }
  readonly authority: Authority
  readonly clock: Clock
  readonly config: Config
  readonly tokenKeys: TokenKeys
  readonly openIdConnect: OpenIdConnect
}

export function createOpenIdConnect({
  auth,
  clock,
  config,
  tokenKeys,
  isShared,
}: Pick<OpenIdParts, 'auth' | 'clock' | 'config' | 'tokenKeys'> & { readonly isShared: boolean }) {
  const revokedTokens = new RevokedTokens()
  return {
    issuers: new Issuers(config),
    requests: new AuthorizationRequests(clock, undefined, isShared),
    externalAuthorizations: new ExternalAuthorizations({ clock, signers: auth.signers }),
    accessTokens: new VerifiedAccessTokens(clock, tokenKeys, revokedTokens),
    revokedTokens,
  } satisfies OpenIdConnect
}
