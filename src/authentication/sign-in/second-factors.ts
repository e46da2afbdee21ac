// The second factors that a session still owes. They are computed for every request and never cached.
//
// A second factor by token belongs to a request: its caller holds the tokens that were verified for it. Whether they are
// still valid is decided again after the body has arrived, and in the transaction.
import type { Instant } from '../../foundation/clock.ts'
import {
  isStillTrusted,
  isStillValid,
  namesIdentity,
  type SignerRecord,
  type TokenSubject,
  type VerifiedToken,
} from '../../storage/external-tokens.ts'
import type { AuthPolicy } from '../auth-policies.ts'
import type { Signers } from '../signers/signers.ts'

/** The TOTP state of a session. */
export interface TotpState {
  /** The identity had a verified TOTP when it signed in, or another session verified one since. */
  readonly owesTotp: boolean
  /** The session sent a valid code. */
  readonly isTotpComplete: boolean
}

/** The factors that a session owes before it is fully authenticated. */
export interface OutstandingFactors {
  readonly totp: boolean
  /** The external signer whose token must come with every request. */
  readonly signer: string | undefined
}

/** @param provenSigners the ids of the signers whose tokens the request carries, with the identity of the session in them */
export function findOutstandingFactors(
  session: TotpState,
  { secondary }: AuthPolicy,
  provenSigners: readonly string[],
): OutstandingFactors {
  const { requireExtJwtSigner: signer } = secondary
  return {
    totp: owesTotp(session, secondary),
    signer: signer === null || provenSigners.includes(signer) ? undefined : signer,
  }
}

/** Whether a session still owes a factor in a request; see `findOutstandingFactors`. */
export function isPartial(session: TotpState, policy: AuthPolicy, provenSigners: readonly string[]): boolean {
  const { secondary } = policy
  const { requireExtJwtSigner: signer } = secondary
  return owesTotp(session, secondary) || (signer !== null && !provenSigners.includes(signer))
}

/**
 * Whether a session may set TOTP up: a full session may; a partial one only if it owes nothing else, and the policy requires TOTP.
 * Otherwise a client that knows the password alone could give the identity a factor that its owner does not have.
 */
export function canSetUpTotp(session: TotpState, policy: AuthPolicy, provenSigners: readonly string[]): boolean {
  const { totp, signer } = findOutstandingFactors(session, policy, provenSigners)
  return signer === undefined && (!totp || policy.secondary.requireTotp)
}

function owesTotp(session: TotpState, secondary: AuthPolicy['secondary']): boolean {
  return (session.owesTotp || secondary.requireTotp) && !session.isTotpComplete
}

const NO_SIGNERS: readonly string[] = []

/** The signers by their ids. */
export interface SignersById {
  get(id: string): SignerRecord | undefined
}

/** Returns the ids of the signers whose tokens name the identity and are still valid. */
export function findProvenSigners(
  tokens: readonly VerifiedToken[],
  identity: TokenSubject,
  signers: SignersById,
  now: Instant,
): readonly string[] {
  if (tokens.length === 0) return NO_SIGNERS
  return tokens.flatMap((token) => {
    const isProven = namesIdentity(token, identity) && isStillValid(token, signers.get(token.signerId), now)
    return isProven ? [token.signerId] : []
  })
}

/**
 * Returns the ids of the signers whose tokens a session has shown, if it may still rest on them: each names the identity, and its signer
 * is enabled and unchanged, and has the key. The tokens themselves may have expired.
 */
export function findLastingSigners(
  tokens: readonly VerifiedToken[],
  identity: TokenSubject,
  signers: Pick<Signers, 'get'>,
): readonly string[] {
  return tokens.flatMap((token) => {
    const signer = signers.get(token.signerId)
    const hasKey = [...(signer?.keys.values() ?? [])].some(({ fingerprint }) => fingerprint === token.signerKey)
    return hasKey && isStillTrusted(token, signer) && namesIdentity(token, identity) ? [token.signerId] : []
  })
}
