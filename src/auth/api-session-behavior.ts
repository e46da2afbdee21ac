// The members of an API session that are not in its row: its token for its owner, what it still owes, how long it lives.
import type { Behavior } from '../behavior.ts'
import { toIsoTime } from '../clock.ts'
import type { ReadContext } from '../context.ts'
import type { apiSessions } from '../resources/api-sessions.ts'
import type { ComputedInput } from '../resources/define.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { AuthPolicyCache } from './auth-policies.ts'
import type { ExtensionRequests } from './extension-requests.ts'
import { findOutstandingFactors, type OutstandingFactors } from './second-factors.ts'

/** How callers of a dialect call the second factor of this controller's own, and its codes. */
export interface TotpWords {
  readonly provider: string
  readonly format: string
}

/** The session is shown to itself: with its token, what it still owes, and when it ends. */
export interface OwnApiSessionView {
  readonly totpWords: TotpWords
}

export class ApiSessionBehavior implements Behavior<typeof apiSessions> {
  readonly #apiSessions: ApiSessions
  readonly #policies: AuthPolicyCache
  readonly #extensions: ExtensionRequests

  constructor(apiSessions: ApiSessions, policies: AuthPolicyCache, extensions: ExtensionRequests) {
    this.#apiSessions = apiSessions
    this.#policies = policies
    this.#extensions = extensions
  }

  async computeFields(
    context: ReadContext,
    rows: readonly ComputedInput[],
    view: unknown,
  ): Promise<Record<string, unknown>[]> {
    const own = (view as OwnApiSessionView | undefined)?.totpWords
    return rows.map((row) => ({
      ...this.#members(row, own),
      ...this.#extensions.get(row.isCertExtendable === 1 ? (row.authenticatorId as string) : ''),
      token: own || isCallersOwn(context, row) ? this.#apiSessions.deriveToken(row.id) : null,
    }))
  }

  #members(row: ComputedInput, own: TotpWords | undefined): Record<string, unknown> {
    const storedActivityAt = row.lastActivityAt as number
    const session = this.#apiSessions.get(row.id)
    const policy = session && this.#policies.get(session.identity.authPolicyId)
    // The stored time lags behind, and a session that is alive must not seem to have ended.
    const lastActivityAt = session?.lastActivityAt ?? storedActivityAt
    const owesTotp = row.owesTotp === 1
    const common = {
      isMfaRequired: owesTotp || policy?.secondary.requireTotp === true,
      authQueries: [] as object[],
      cachedLastActivityAt: toIsoTime(lastActivityAt),
    }
    if (!own) return common
    const outstanding = policy && findOutstandingFactors({ owesTotp, isTotpComplete: row.isMfaComplete === 1 }, policy)
    return {
      ...common,
      authQueries: outstanding ? authQueries(outstanding, own) : [],
      expirationSeconds: Math.floor(this.#apiSessions.timeout / 1000),
      expiresAt: toIsoTime(lastActivityAt + this.#apiSessions.timeout),
    }
  }
}

/** The one session of a list whose token the caller has already; the tokens of other sessions are not shown. */
function isCallersOwn({ caller }: ReadContext, { id }: ComputedInput): boolean {
  return caller.kind === 'identity' && caller.apiSessionId === id
}

/** What is outstanding, in the form in which clients look for it. */
function authQueries({ totp, signer }: OutstandingFactors, { provider, format }: TotpWords): object[] {
  const queries: object[] = []
  if (totp) {
    const request = { httpMethod: 'POST', httpUrl: './authenticate/mfa', minLength: 4, maxLength: 6 }
    queries.push({ typeId: 'MFA', provider, format, ...request, scopes: [] })
  }
  if (signer !== undefined) queries.push({ typeId: 'EXT-JWT', provider: 'url', id: signer, scopes: [] })
  return queries
}
