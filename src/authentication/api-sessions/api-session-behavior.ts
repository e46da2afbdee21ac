// The members of an API session that are not in its row: its token for its owner, what it still owes, how long it lives.

import type { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import { EMPTY_OR_NULL, inBothForms } from '../../definitions/schema/json-forms.ts'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import { RawJson } from '../../storage/records/raw-json.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { AuthPolicies, AuthPolicy } from '../auth-policies.ts'
import type { ExtensionRequests } from '../credentials/extension-requests.ts'
import type { Method } from '../sign-in/authentication-methods.ts'
import { findOutstandingFactors, findProvenSigners } from '../sign-in/second-factors.ts'
import type { Signer, Signers } from '../signers/signers.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { LiveApiSession } from './live-api-sessions.ts'

/** How callers of a dialect call the second factor of this controller's own, and its codes. */
export interface TotpWords {
  readonly provider: string
  readonly format: string
}

/** How API sessions are shown to a caller. */
export interface ApiSessionView {
  readonly totpWords: TotpWords
  /** The verified tokens of the request. They concern the sessions of the identity that they name. */
  readonly externalTokens: readonly VerifiedToken[]
  /** The session is shown to itself: with its token, and when it ends. */
  readonly isOwn: boolean
  /** The access token of the request, if it was sent with one. */
  readonly accessToken?: string | undefined
}

export class ApiSessionBehavior implements Behavior<typeof apiSessions> {
  readonly #apiSessions: ApiSessions
  readonly #policies: AuthPolicies
  readonly #signers: Signers
  readonly #extensions: ExtensionRequests

  constructor(apiSessions: ApiSessions, policies: AuthPolicies, signers: Signers, extensions: ExtensionRequests) {
    this.#apiSessions = apiSessions
    this.#policies = policies
    this.#signers = signers
    this.#extensions = extensions
  }

  computeFields(context: ReadContext, rows: readonly ComputedInput[], view: unknown): Record<string, unknown>[] {
    const now = context.clock.now()
    return rows.map((row) => this.#computeMembers(context, row, view as ApiSessionView | undefined, now))
  }

  /** One literal, because every client polls its own session, and to merge objects costs more than to compute their members. */
  #computeMembers(
    context: ReadContext,
    row: ComputedInput,
    view: ApiSessionView | undefined,
    now: Instant,
  ): Record<string, unknown> {
    const isOwn = view?.isOwn === true
    const session = this.#apiSessions.get(row.id)
    const policy = session && this.#policies.get(session.identity.authPolicyId)
    // The stored time lags behind, and a session that is alive must not seem to have ended.
    const lastActivityAt = session?.lastActivityAt ?? (row.lastActivityAt as number)
    const authenticatedAt = session?.authenticatedAt ?? (row.authenticatedAt as number)
    const tokensEndAt = session ? session.endsAt : (row.endsAt as Instant | null)
    const endsAt = this.#apiSessions.lifetime.getEnd(
      { lastActivityAt, authenticatedAt, clientId: row.clientId as string | null, endsAt: tokensEndAt },
      row.method as Method | null,
    )
    const requests = this.#extensions.get(row.isCertExtendable === 1 ? (row.authenticatorId as string) : '')
    return {
      token: this.#getToken(context, row, view),
      isMfaRequired: row.owesTotp === 1 || policy?.secondary.requireTotp === true,
      authQueries: view && session && policy ? this.#listAuthQueries(session, policy, view, now) : NO_QUERIES,
      cachedLastActivityAt: renderTime(lastActivityAt),
      isCertExtendRequested: requests.isCertExtendRequested,
      isCertKeyRollRequested: requests.isCertKeyRollRequested,
      expirationSeconds: isOwn ? Math.floor((endsAt - lastActivityAt) / 1000) : undefined,
      expiresAt: isOwn ? renderTime(endsAt) : undefined,
    }
  }

  #getToken(context: ReadContext, row: ComputedInput, view: ApiSessionView | undefined): string | RawJson {
    if (!view?.isOwn && !isCallersOwn(context, row)) return HIDDEN_TOKEN
    if (row.clientId === null) return this.#apiSessions.deriveToken(row.id)
    // A session by OpenID Connect has the tokens that were signed for it. They need no escapes.
    return view?.accessToken === undefined ? HIDDEN_TOKEN : new RawJson(`"${view.accessToken}"`)
  }

  #listAuthQueries(
    session: LiveApiSession,
    policy: AuthPolicy,
    { totpWords, externalTokens }: ApiSessionView,
    now: Instant,
  ): object {
    const provenSigners = findProvenSigners(externalTokens, session.identity, this.#signers, now)
    const { totp, signer } = findOutstandingFactors(session, policy, provenSigners)
    if (!totp && signer === undefined) return NO_QUERIES
    return [
      ...(totp ? [totpQuery(totpWords)] : []),
      ...(signer === undefined ? [] : [signerQuery(signer, this.#signers.get(signer))]),
    ]
  }
}

const NO_QUERIES = new RawJson('[]')
const NO_SCOPES = new RawJson(EMPTY_OR_NULL)
/** In place of the token of another session: compatible clients expect text, and typed ones a UUID. */
const HIDDEN_TOKEN = new RawJson(inBothForms('null', '"00000000-0000-0000-0000-000000000000"'))

/** A time as JSON text, which needs no escapes: each poll shows two new ones. */
function renderTime(at: Instant): RawJson {
  return new RawJson(`"${toIsoTime(at)}"`)
}

/** The one session of a list whose token the caller has already; the tokens of other sessions are not shown. */
function isCallersOwn({ caller }: ReadContext, { id }: ComputedInput): boolean {
  return caller.kind === 'identity' && caller.apiSessionId === id
}

/** The query for a code of the controller's own second factor, in the form in which clients look for it. */
function totpQuery({ provider, format }: TotpWords): object {
  const request = { httpMethod: 'POST', httpUrl: './authenticate/mfa', minLength: 4, maxLength: 6 }
  return { typeId: 'MFA', provider, format, ...request, scopes: NO_SCOPES }
}

/** The query for a token of an external signer; what the signer does not tell clients is absent. */
function signerQuery(id: string, signer: Signer | undefined): object {
  const { externalAuthUrl, clientId, scopes } = signer ?? {}
  return {
    typeId: 'EXT-JWT',
    provider: 'url',
    id,
    ...(externalAuthUrl ? { httpUrl: externalAuthUrl } : {}),
    ...(clientId ? { clientId } : {}),
    scopes: scopes && scopes.length > 0 ? scopes : NO_SCOPES,
  }
}
