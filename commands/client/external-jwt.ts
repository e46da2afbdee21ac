// Reads JWTs from files: those of external signers, which other programs renew, and enrollment tokens.
import { readFileSync } from 'node:fs'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { readSecret } from '../foundation/flag-values.ts'

/** The JWT in a file, or on stdin by `-`. @throws CommandError with exit code 2 if there is none */
export async function readExternalJwt(file: string): Promise<string> {
  const jwt = (await readSecret('ext-jwt-file', file)).trim()
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(jwt)) return jwt
  throw makeUsageError(`${file === '-' ? 'stdin' : file} does not contain a JWT`, { field: 'ext-jwt-file' })
}

/** The subject of the JWT in a file, unverified; undefined if the file cannot be read, or does not contain a JWT. */
export function readJwtSubject(file: string): string | undefined {
  try {
    const sub = readClaims(readFileSync(file, 'utf8').trim())?.sub
    return typeof sub === 'string' ? sub : undefined
  } catch {
    return undefined
  }
}

/** The claims of a JWT, unverified; undefined if it is not a JWT. */
export function readClaims(jwt: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const [, claims = ''] = jwt.split('.')
    return JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** The headers of requests that carry a JWT. */
export function toBearerHeaders(jwt: string | undefined): Readonly<Record<string, string>> {
  return jwt === undefined ? {} : { authorization: `Bearer ${jwt}` }
}

/** When the JWT expires, RFC 3339; undefined if it does not state that. */
export async function readExpiry(jwt: string): Promise<string | undefined> {
  const { decodeJwt } = await import('jose')
  try {
    const { exp } = decodeJwt(jwt)
    return exp === undefined ? undefined : new Date(exp * 1000).toISOString()
  } catch {
    return undefined
  }
}
