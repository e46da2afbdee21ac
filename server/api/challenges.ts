// The challenges of refused requests (RFC 9110, section 11.6.1): by which kind of credential a client can do better.
import type { TokenFault } from '../../src/authentication/openid-connect/access-tokens.ts'

const DESCRIPTIONS: Readonly<Record<TokenFault, string>> = {
  missing: 'no matching token was provided',
  expired: 'token expired',
  invalid: 'token is invalid',
}

/** The realms of tokens, as clients know them. */
const REALMS = {
  access: 'openziti-oidc',
  primary: 'openziti-primary-ext-jwt',
  secondary: 'openziti-secondary-ext-jwt',
} as const

function renderChallenge(scheme: string, realm: string, fault: TokenFault, others = ''): string {
  return `${scheme} realm="${realm}" error="${fault}" error_description="${DESCRIPTIONS[fault]}"${others}`
}

/** The challenge of a request whose session header names no session. */
export function sessionChallenge(header: string): string {
  return renderChallenge(header, header, 'invalid')
}

/** The challenges of a request without a session header. @param header the session header that it could have */
export function accessTokenChallenge(header: string, fault: TokenFault): string {
  const challenge = renderChallenge('Bearer', REALMS.access, fault)
  return fault === 'missing' ? `${renderChallenge(header, header, fault)}, ${challenge}` : challenge
}

/** The challenge for a token of one of these signers; undefined if there is none. */
export function signerChallenge(
  use: 'primary' | 'secondary',
  fault: TokenFault,
  signers: readonly { readonly id: string; readonly issuer: string | null }[],
): string | undefined {
  if (signers.length === 0) return undefined
  const [ids, issuers] = [signers.map(({ id }) => id), signers.flatMap(({ issuer }) => issuer ?? [])]
  const others = ` id="${ids.join('|')}" issuer="${issuers.map(quote).join('|')}"`
  return renderChallenge('Bearer', REALMS[use], fault, others)
}

/** RFC 9110, section 5.6.4: without characters that no header can carry. */
function quote(text: string): string {
  return text.replace(/[^ -~]/g, '?').replace(/[\\"]/g, '\\$&')
}
