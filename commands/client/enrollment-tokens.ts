// Enrollment tokens: reads them, and verifies that the controller at their address issued them, before anything is sent there.
import { isIP } from 'node:net'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { toJwtAlgorithm } from '../../src/pki/algorithms.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { isSelfSigned } from '../../src/pki/chains.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toTimeText } from '../foundation/times.ts'
import { fetchOfferedTrust, type OfferedTrust } from './trust.ts'

const METHODS = ['ott', 'ottca', 'ca', 'updb'] as const
export type TokenMethod = (typeof METHODS)[number]

/** The claims of a token that an enrollment needs. */
export interface EnrollmentToken {
  /** The file that it came from, for messages. */
  readonly source: string
  readonly jwt: string
  readonly method: TokenMethod
  /** The address of the controller, `https://host:port`. */
  readonly url: string
  /** The id of the identity; for `ca` that of the authority. */
  readonly subject: string
  /** The secret that is redeemed. A token of the method `ca` has none, because the certificate is the credential. */
  readonly secret: string | undefined
  /** RFC 3339; undefined if it does not expire. */
  readonly expiresAt: string | undefined
}

/** Methods of tokens that are not for this program, with the reason. */
const OTHER_METHODS: Readonly<Record<string, string>> = {
  erott: 'it enrolls an edge router, with the program of that router',
  trott: 'it enrolls a router, with the program of that router',
  network: 'it identifies a network, and does not enroll an identity',
}
const ROUTER_METHODS: readonly string[] = ['erott', 'trott']

/**
 * Reads the claims of a token, unverified. @throws CommandError with exit code 2 if it is not an enrollment token, or one of a
 * method that this program does not complete
 */
export async function readEnrollmentToken(source: string, text: string): Promise<EnrollmentToken> {
  const jwt = text.trim()
  const { em, iss, sub, jti, exp } = await decodeClaims(source, jwt)
  if (typeof em !== 'string' || typeof iss !== 'string' || typeof sub !== 'string') throw notTokenError(source)
  const method = METHODS.find((known) => known === em)
  if (!method) throw otherMethodError(source, em)
  if (!URL.canParse(iss) || !iss.startsWith('https://')) throw notTokenError(source)
  if (method !== 'ca' && typeof jti !== 'string') throw notTokenError(source)
  const end = exp === undefined ? undefined : new Date(exp * 1000)
  if (end && Number.isNaN(end.getTime())) throw notTokenError(source)
  return {
    source,
    jwt,
    method,
    url: new URL(iss).origin,
    subject: sub,
    secret: method === 'ca' ? undefined : jti,
    expiresAt: end?.toISOString(),
  }
}

async function decodeClaims(source: string, jwt: string) {
  const { decodeJwt } = await import('jose')
  try {
    return decodeJwt<{ em?: unknown }>(jwt)
  } catch {
    throw notTokenError(source)
  }
}

function otherMethodError(source: string, method: string): CommandError {
  const hint = `on the machine of the router: ziti router enroll ROUTER.yml --jwt ${quoteShellWord(source)}`
  const message = `${source}: ${OTHER_METHODS[method] ?? `the method ${method} is unknown`}`
  return makeUsageError(message, ROUTER_METHODS.includes(method) ? { hint } : {})
}

function notTokenError(source: string): CommandError {
  return makeUsageError(`${source} does not contain an enrollment token`, {
    hint: 'an administrator creates one: controller identity create NAME -o jwt',
  })
}

/**
 * Verifies that the controller at the address of the token signed it: with the key of the certificate that it serves there.
 * @returns the authorities of that controller, as PEM
 * @throws CommandError with exit code 1 if another controller signed the token, or if it is reached under another name
 * @throws UnreachableError if there is no response
 */
export async function verifyEnrollmentToken(token: EnrollmentToken): Promise<string> {
  const trust = await fetchOfferedTrust(token.url)
  if (!trust?.authorities.some(isSelfSigned)) {
    throw untrustedError(`${token.url} is not a controller: it does not offer a root certificate`, token)
  }
  await assertSignedBy(token, trust)
  const { hostname } = new URL(token.url)
  const host = hostname.replace(/^\[|\]$/g, '')
  if (!(isIP(host) ? trust.server.checkIP(host) : trust.server.checkHost(host))) {
    throw untrustedError(`the certificate of the controller at ${token.url} is for another name`, token)
  }
  return trust.authorities.map(toCertificatePem).join('')
}

async function assertSignedBy(token: EnrollmentToken, { server: { publicKey } }: OfferedTrust): Promise<void> {
  const { compactVerify } = await import('jose')
  try {
    await compactVerify(token.jwt, publicKey, { algorithms: [toJwtAlgorithm(publicKey)] })
  } catch {
    throw untrustedError(`${token.source} was not issued by the controller at ${token.url}`, token)
  }
}

function untrustedError(message: string, { source }: EnrollmentToken): CommandError {
  return new CommandError(EXIT.failed, 'UNTRUSTED', message, {
    hint: `${source} may be of another network, or older than the controller: ask an administrator for a new token`,
  })
}

/** The errors by which a controller refuses a token, whatever else was sent. */
export const REJECTED_TOKEN_CODES: readonly string[] = ['INVALID_ENROLLMENT_TOKEN', 'ENROLLMENT_EXPIRED']

/**
 * Has a token refused before the user is asked for what it is redeemed with. A controller reads the token before it misses the rest.
 * @param redeem redeems the token with nothing
 * @throws what `redeem` throws if the controller refuses the token
 */
export async function requireUsableToken(redeem: () => Promise<unknown>): Promise<void> {
  try {
    await redeem()
  } catch (error) {
    if (!(error instanceof RequestError) || REJECTED_TOKEN_CODES.includes(error.code)) throw error
  }
}

/** Explains why a controller does not accept a token, with what to do. */
export function explainRejectedToken({ source, expiresAt, url }: EnrollmentToken): CommandError {
  const isExpired = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()
  const reason = isExpired
    ? `the token in ${source} expired ${toTimeText(expiresAt)}, at ${expiresAt}`
    : `the token in ${source} was used already, or was replaced by a newer one`
  return new CommandError(
    EXIT.usage,
    isExpired ? 'ENROLLMENT_EXPIRED' : 'INVALID_ENROLLMENT_TOKEN',
    `${url}: ${reason}`,
    {
      hint: 'ask an administrator for a new token',
    },
  )
}
