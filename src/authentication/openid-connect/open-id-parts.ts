// The parts of the controller that OpenID Connect uses, and its own.
import type { Kysely } from 'kysely'
import type { Clock } from '../../foundation/clock.ts'
import type { Authority } from '../../pki/authority.ts'
import type { Config } from '../../settings/settings.ts'
import type { Database } from '../../storage/database.ts'
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
import { SealedTexts } from './sealed-texts.ts'

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

interface OwnParts extends Pick<OpenIdParts, 'auth' | 'clock' | 'config' | 'tokenKeys'> {
  readonly db: Kysely<Database>
  /** The key of what clients carry between the steps of a sign-in: that of every controller of the network. */
  readonly key: Buffer
  readonly catchUp: (() => Promise<void>) | undefined
}

export function createOpenIdConnect({ auth, catchUp, clock, config, db, key, tokenKeys }: OwnParts) {
  const revokedTokens = new RevokedTokens()
  const texts = new SealedTexts(key)
  return {
    issuers: new Issuers(config),
    requests: new AuthorizationRequests({ catchUp, clock, db, texts }),
    externalAuthorizations: new ExternalAuthorizations({ clock, signers: auth.signers, texts }),
    accessTokens: new VerifiedAccessTokens(clock, tokenKeys, revokedTokens, auth.apiSessions),
    revokedTokens,
  } satisfies OpenIdConnect
}
