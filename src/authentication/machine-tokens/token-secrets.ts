// The secrets of tokens: random, with a beginning by which scanners of secrets recognize them, and stored as a digest only.
//
// A digest without salt or cost is enough, because 256 random bits cannot be guessed; and to look a digest up tells nothing of the
// secret by the time that it takes.
import { hash, randomBytes } from 'node:crypto'
import { TOKEN_PREFIX } from '../../definitions/resources/tokens.ts'

const FORM = /^ectl_[A-Za-z0-9_-]{43}$/

export function newTokenSecret(): string {
  return TOKEN_PREFIX + randomBytes(32).toString('base64url')
}

/** Returns the stored form of a secret; undefined if it has not the form of one. */
export function hashSecret(secret: string): string | undefined {
  return FORM.test(secret) ? hash('sha256', secret, 'base64url') : undefined
}
