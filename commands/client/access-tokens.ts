// The access token of a profile whose session began by OpenID Connect: renewed before it expires, and stored.
import type { Transport } from '../../src/client/transport.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { toBearerHeaders } from './external-jwt.ts'
import { GrantEndedError, refreshTokens } from './oauth.ts'
import { type Profile, Profiles, type StoredAccessToken, type StoredGrant } from './profiles.ts'

// A request that is sent with the token has to arrive before it expires.
const RENEWED_BEFORE_MS = 30_000

type Headers = Readonly<Record<string, string>>

export class AccessTokens {
  readonly #transport: Transport
  readonly #name: string
  #profile: Profile
  #renewal: Promise<Headers> | undefined

  constructor(transport: Transport, name: string, profile: Profile) {
    this.#transport = transport
    this.#name = name
    this.#profile = profile
  }

  /** The headers of requests with a token that has not expired. @throws CommandError with exit code 4 if the session has ended */
  getHeaders(): Promise<Headers> {
    const { accessToken } = this.#profile
    if (accessToken && isFresh(accessToken)) return Promise.resolve(toBearerHeaders(accessToken.token))
    this.#renewal ??= this.renew().finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  /** Renews the token, and stores it with the next refresh token. @throws CommandError with exit code 4 if the session has ended */
  async renew(): Promise<Headers> {
    const storedProfile = Profiles.open(process.env).get(this.#name)
    const isRenewed = storedProfile?.accessToken?.token !== this.#profile.accessToken?.token
    // Another process has renewed it meanwhile.
    if (storedProfile?.accessToken && isRenewed && isFresh(storedProfile.accessToken)) {
      this.#profile = storedProfile
      return toBearerHeaders(storedProfile.accessToken.token)
    }
    const profile = isRenewed && storedProfile ? storedProfile : this.#profile
    if (!profile.grant) throw this.#endedError()
    const renewed = await this.#refresh(profile.grant)
    this.#profile = { ...profile, ...renewed }
    Profiles.open(process.env).renewSession(this.#name, profile, renewed)
    return toBearerHeaders(renewed.accessToken.token)
  }

  async #refresh(grant: StoredGrant): Promise<{ accessToken: StoredAccessToken; grant: StoredGrant }> {
    try {
      const { accessToken, refreshToken, expiresAt } = await refreshTokens(this.#transport, grant.tokenEndpoint, grant)
      if (accessToken === undefined) throw new GrantEndedError('no access token was issued')
      return {
        accessToken: { token: accessToken, expiresAt: expiresAt ?? Date.now() },
        grant: { ...grant, refreshToken: refreshToken ?? grant.refreshToken },
      }
    } catch (error) {
      throw error instanceof GrantEndedError ? this.#endedError() : error
    }
  }

  #endedError(): CommandError {
    return new CommandError(EXIT.signInFirst, 'UNAUTHORIZED', `${this.#profile.url}: your session has ended`, {
      hint: toCommandLine('login', ['--profile', this.#name]),
    })
  }
}

function isFresh({ expiresAt }: StoredAccessToken): boolean {
  return Date.now() < expiresAt - RENEWED_BEFORE_MS
}
