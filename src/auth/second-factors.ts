// The second factors that a session still owes. Computed for every request and never cached.
import type { AuthPolicy } from './auth-policies.ts'

/** The TOTP state of a session. */
export interface TotpState {
  /** The identity had a verified TOTP when it signed in. */
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

export function findOutstandingFactors(session: TotpState, { secondary }: AuthPolicy): OutstandingFactors {
  return {
    totp: owesTotp(session, secondary),
    signer: hasTokenOf(secondary.requireExtJwtSigner) ? undefined : (secondary.requireExtJwtSigner ?? undefined),
  }
}

/** Whether a session still owes a factor. */
export function isPartial(session: TotpState, { secondary }: AuthPolicy): boolean {
  return owesTotp(session, secondary) || !hasTokenOf(secondary.requireExtJwtSigner)
}

function owesTotp(session: TotpState, secondary: AuthPolicy['secondary']): boolean {
  return (session.owesTotp || secondary.requireTotp) && !session.isTotpComplete
}

/**
 * Whether the request carries a token of the required signer. External signers come with a later release: until then no
 * request does, and no session satisfies a policy that requires one.
 */
function hasTokenOf(signer: string | null): boolean {
  return signer === null
}
