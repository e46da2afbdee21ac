// Verifies external JWTs (RFC 7519) against the signer that their issuer names.
import { createHash } from 'node:crypto'
import type { JWTPayload, ProtectedHeaderParameters } from 'jose'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import { type Clock, type Instant, MAX_INSTANT, toIsoTime } from '../../foundation/clock.ts'
import {
  describeRules,
  isStillValid,
  type TokenCheck,
  TokenError,
  type VerifiedToken,
} from '../../storage/external-tokens.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { KeyRefresher } from './key-refresher.ts'
import type { Signer, Signers } from './signers.ts'
import type { SigningKey } from './signing-keys.ts'

/** Tokens with the groups of a large directory reach ten kilobytes. */
const MAX_TOKEN_LENGTH = 16_384
const LEEWAY_SECONDS = 30
// Clients send the same token with every request for minutes. An entry takes less than a kilobyte.
const MAX_CACHED_TOKENS = 10_000
// A client that does not know that its token has ended repeats it; for this time that costs no signature check.
const REJECTION_MS = 10_000
const MAX_CACHED_REJECTIONS = 1_000
const MAX_PRINTED_LENGTH = 100

/** Receives each check that a token passes, with the value that decided it. */
export type ReportCheck = (check: TokenCheck, detail: string) => void

interface CachedToken {
  readonly token: VerifiedToken
  readonly key: Pick<SigningKey, 'kid' | 'fingerprint'>
}

/** The reason why a key did not accept a token, by the rules that its signer had. */
interface CachedRejection {
  readonly error: TokenError
  readonly signerRules: string
  readonly keyFingerprint: string
  readonly until: Instant
}

/** The tokens of one request: those that passed, and why the others did not, in their order. */
export interface VerifiedTokens {
  readonly verified: readonly VerifiedToken[]
  readonly rejected: readonly TokenError[]
}

interface TokenVerifierParts {
  readonly directory: Signers
  readonly keyRefresher: KeyRefresher
  readonly clock: Clock
}

export class TokenVerifier {
  readonly #signers: Signers
  readonly #keyRefresher: KeyRefresher
  readonly #clock: Clock
  /** Tokens that passed, by their SHA-256. */
  readonly #cache = createBoundedCache<CachedToken>(MAX_CACHED_TOKENS)
  /** Tokens that a key did not accept lately, by their SHA-256. */
  readonly #rejections = createBoundedCache<CachedRejection>(MAX_CACHED_REJECTIONS)

  constructor({ directory, keyRefresher, clock }: TokenVerifierParts) {
    this.#signers = directory
    this.#keyRefresher = keyRefresher
    this.#clock = clock
  }

  /** Verifies the tokens of one request. */
  async verifyAll(contexts: Contexts, tokens: readonly string[]): Promise<VerifiedTokens> {
    const verified: VerifiedToken[] = []
    const rejected: TokenError[] = []
    for (const token of tokens) {
      try {
        verified.push(await this.verify(contexts, token))
      } catch (error) {
        if (!(error instanceof TokenError)) throw error
        rejected.push(error)
      }
    }
    return { verified, rejected }
  }

  /**
   * Verifies a token. If its key is unknown, the endpoint of its signer is asked first, unless it was asked a moment ago.
   * @param contexts what fetched keys are stored with
   * @throws TokenError
   */
  async verify(contexts: Contexts, token: string): Promise<VerifiedToken> {
    // Before anything is parsed.
    requireBoundedLength(token)
    const hash = createHash('sha256').update(token).digest('base64url')
    const cached = this.#cache.get(hash)
    if (cached && this.#isCurrent(cached)) return cached.token
    const { verifiedToken, key } = await this.#check(contexts, token, () => {}, { hash })
    this.#cache.set(hash, { token: verifiedToken, key })
    return verifiedToken
  }

  /**
   * Verifies a token like `verify`, as one of this signer and never from the cache, and reports each check that it passes.
   * @throws TokenError
   */
  async explain(contexts: Contexts, signerId: string, token: string, report: ReportCheck): Promise<VerifiedToken> {
    requireBoundedLength(token)
    return (await this.#check(contexts, token, report, { signerId })).verifiedToken
  }

  /** Whether a token that was verified earlier would pass again: the signer may have changed since, or lost the key. */
  #isCurrent({ token, key }: CachedToken): boolean {
    const signer = this.#signers.get(token.signerId)
    return isStillValid(token, signer, this.#clock.now()) && signer?.keys.get(key.kid)?.fingerprint === key.fingerprint
  }

  async #check(
    contexts: Contexts,
    token: string,
    report: ReportCheck,
    expected: { readonly signerId: string } | { readonly hash: string },
  ): Promise<{ verifiedToken: VerifiedToken; key: SigningKey }> {
    const { header, claims } = await decode(token)
    report('format', 'a signed JWT')
    const { kid } = header
    if (typeof kid !== 'string' || kid === '') throw new TokenError('kid', 'the header has no kid')
    report('kid', print(kid))
    const signer = this.#requireSigner(claims.iss)
    const issuerFact = `${print(signer.issuer)} is the issuer of ${signer.name}`
    if ('signerId' in expected && signer.id !== expected.signerId) throw new TokenError('issuer', issuerFact)
    report('issuer', issuerFact)
    if (!signer.enabled) throw new TokenError('signer-enabled', `the signer ${signer.name} is disabled`)
    report('signer-enabled', signer.name)
    const { key, current } = await this.#requireKey(contexts, signer, kid)
    report('key', `${print(kid)} is a key of ${signer.name}, for ${key.algorithms.join(', ')}`)
    const signerRules = describeRules(current)
    const judge = () => this.#verifySignatureAndClaims(token, current, key, report)
    const keyed = { signerRules, keyFingerprint: key.fingerprint }
    const payload = 'hash' in expected ? await this.#judgeOnce(expected.hash, keyed, judge) : await judge()
    const subject = readTokenSubject(payload, current)
    report('identity-claim', `${current.claimsProperty} is ${print(subject)}`)
    const verifiedToken = {
      signerId: current.id,
      signerRules,
      signerKey: key.fingerprint,
      subject,
      isExternalId: current.useExternalId,
      validUntil: ((payload.exp as number) + LEEWAY_SECONDS) * 1000,
    }
    return { verifiedToken, key }
  }

  /** Repeats the rejection of a token that the same key did not accept a moment ago, by the same rules. @throws TokenError */
  async #judgeOnce(
    hash: string,
    keyed: Pick<CachedRejection, 'signerRules' | 'keyFingerprint'>,
    judge: () => Promise<JWTPayload>,
  ): Promise<JWTPayload> {
    const { signerRules, keyFingerprint } = keyed
    const recent = this.#rejections.get(hash)
    const isSame = recent?.signerRules === signerRules && recent.keyFingerprint === keyFingerprint
    if (recent && isSame && this.#clock.monotonic() < recent.until) throw recent.error
    try {
      return await judge()
    } catch (error) {
      const until = this.#clock.monotonic() + REJECTION_MS
      // One that is not valid yet may be in a moment.
      const isLasting = error instanceof TokenError && error.check !== 'not-before'
      if (isLasting) this.#rejections.set(hash, { error, ...keyed, until })
      throw error
    }
  }

  /** Exactly one signer has the issuer, because issuers are unique. */
  #requireSigner(issuer: unknown): Signer {
    if (typeof issuer !== 'string') throw new TokenError('issuer', 'the token has no iss')
    const signer = this.#signers.findByIssuer(issuer)
    if (!signer) throw new TokenError('issuer', `${print(issuer)} is not the issuer of a signer`)
    return signer
  }

  /** Returns the key, and the signer as it is when the key is known. */
  async #requireKey(contexts: Contexts, signer: Signer, kid: string): Promise<{ key: SigningKey; current: Signer }> {
    const knownKey = signer.keys.get(kid)
    if (knownKey) return { key: knownKey, current: signer }
    await this.#keyRefresher.refreshForUnknownKey(contexts, signer.id)
    const current = this.#signers.get(signer.id)
    const key = current?.keys.get(kid)
    if (!current?.enabled || !key) {
      const { failure } = this.#keyRefresher.getStatus(signer.id)
      const reason = failure ? `, and its endpoint returned no keys: ${failure.message}` : ''
      throw new TokenError('key', `${print(kid)} is not a key of ${signer.name}${reason}`)
    }
    return { key, current }
  }

  async #verifySignatureAndClaims(
    token: string,
    { name, issuer, audience }: Signer,
    { key, algorithms }: SigningKey,
    report: ReportCheck,
  ): Promise<JWTPayload> {
    if (audience === null) throw new TokenError('audience', `the signer ${name} has no audience, so no token is for it`)
    const { jwtVerify } = await import('jose')
    let payload: JWTPayload
    try {
      const currentDate = new Date(this.#clock.now())
      const options = { algorithms: [...algorithms], issuer, audience, currentDate, clockTolerance: LEEWAY_SECONDS }
      payload = (await jwtVerify(token, key, options)).payload
    } catch (error) {
      const check = findFailedCheck(error)
      for (const passed of listPassedBefore(check)) report(passed, 'passed')
      throw new TokenError(check, describeTokenFailure(check, error as ClaimError, name, audience), { cause: error })
    }
    const { aud, nbf, exp } = payload
    report('signature', 'by the key')
    report('audience', `${print(listAudiences(aud).join(', '))} contains ${audience}`)
    report('not-before', nbf === undefined ? 'the token has no nbf' : toTime(nbf))
    if (exp === undefined) throw new TokenError('expiration', 'the token has no exp')
    // JSON reads a number that is too large as infinite.
    if (!(exp * 1000 <= MAX_INSTANT))
      throw new TokenError('expiration', `the token expires at ${exp}, which is not a time`)
    report('expiration', toTime(exp))
    return payload
  }
}

function requireBoundedLength(token: string): void {
  if (token.length > MAX_TOKEN_LENGTH) {
    throw new TokenError('format', `the token is longer than ${MAX_TOKEN_LENGTH} characters`)
  }
}

/** Reads a token without verifying anything. */
async function decode(token: string): Promise<{ header: ProtectedHeaderParameters; claims: JWTPayload }> {
  const { decodeJwt, decodeProtectedHeader } = await import('jose')
  try {
    return { header: decodeProtectedHeader(token), claims: decodeJwt(token) }
  } catch (error) {
    throw new TokenError('format', 'the token is not a signed JWT', { cause: error })
  }
}

/** Reads the claim that names the identity: a member of the payload itself. */
function readTokenSubject(payload: JWTPayload, { claimsProperty }: Signer): string {
  const subject = Object.hasOwn(payload, claimsProperty) ? payload[claimsProperty] : undefined
  if (typeof subject === 'string' && subject !== '') return subject
  const reason = subject === undefined ? 'has no claim' : 'has no text in the claim'
  throw new TokenError('identity-claim', `the token ${reason} ${claimsProperty}`)
}

const CLAIM_CHECKS: Readonly<Record<string, TokenCheck>> = {
  iss: 'issuer',
  aud: 'audience',
  nbf: 'not-before',
  exp: 'expiration',
}
const SIGNATURE_FAILURES: ReadonlySet<unknown> = new Set([
  'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
  'ERR_JOSE_ALG_NOT_ALLOWED',
  'ERR_JOSE_NOT_SUPPORTED',
])

function findFailedCheck(error: unknown): TokenCheck {
  const { code, claim } = error as { readonly code?: unknown; readonly claim?: unknown }
  if (SIGNATURE_FAILURES.has(code)) return 'signature'
  return CLAIM_CHECKS[String(claim)] ?? 'format'
}

/** The library checks the signature first, then the audience, then the times. */
function listPassedBefore(check: TokenCheck): readonly TokenCheck[] {
  const checks: readonly TokenCheck[] = ['signature', 'audience', 'not-before', 'expiration']
  return checks.slice(0, Math.max(0, checks.indexOf(check)))
}

/** An error of the library about a claim, with the payload that it read. */
type ClaimError = Error & { readonly payload?: JWTPayload }

function describeTokenFailure(
  check: TokenCheck,
  { message, payload }: ClaimError,
  signer: string,
  audience: string,
): string {
  const { aud, exp, nbf } = payload ?? {}
  switch (check) {
    case 'signature':
      return `the signature is not by a key of ${signer}, or not by an algorithm of it`
    case 'audience':
      return aud === undefined
        ? `the token has no "aud"; ${signer} expects ${print(audience)}`
        : `"aud" is ${print(listAudiences(aud).join(', '))}, which does not contain ${print(audience)}`
    case 'expiration':
      return typeof exp === 'number' ? `the token expired at ${toTime(exp)}, its "exp"` : message
    case 'not-before':
      return typeof nbf === 'number' ? `the token is not valid before ${toTime(nbf)}, its "nbf"` : message
    default:
      return message
  }
}

/** The audiences of a claim that an issuer may have filled with anything: only strings are audiences (RFC 7519, 4.1.3). */
function listAudiences(claim: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  return values.filter((value) => typeof value === 'string')
}

function toTime(seconds: number): string {
  const instant = seconds * 1000
  return Number.isSafeInteger(instant) && Math.abs(instant) <= MAX_INSTANT ? toIsoTime(instant) : String(seconds)
}

/** A text of a token as it is logged: quoted, and not long. */
function print(text: string): string {
  return JSON.stringify(text.length > MAX_PRINTED_LENGTH ? `${text.slice(0, MAX_PRINTED_LENGTH)}…` : text)
}
