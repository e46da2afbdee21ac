// What a session owes beyond the credential it began with. Asked anew for every request: nothing of it is remembered.
import type { AuthPolicy } from './auth-policies.ts'

/** What a session itself knows of its second factor. */
export interface TotpState {
  /** The identity had a verified TOTP when it signed in. */
  readonly owesTotp: boolean
  /** The session gave a valid code. */
  readonly isTotpComplete: boolean
}

/** What is outstanding before a session counts as fully authenticated. */
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

/** Whether something is outstanding. */
export function isPartial(session: TotpState, { secondary }: AuthPolicy): boolean {
  return owesTotp(session, secondary) || !hasTokenOf(secondary.requireExtJwtSigner)
}

function owesTotp(session: TotpState, secondary: AuthPolicy['secondary']): boolean {
  return (session.owesTotp || secondary.requireTotp) && !session.isTotpComplete
}

/**
 * Whether the request carries a token of the signer that is demanded. External signers come with a later release: until
 * then no token is, and a policy that demands one is never met.
 */
function hasTokenOf(signer: string | null): boolean {
  return signer === null
}
