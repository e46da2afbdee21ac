// Recovery codes: each passes the second factor once, without the authenticator app.
import { randomBytes } from 'node:crypto'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'

const CODE_COUNT = 20
const LENGTH = 6
// Base32 of RFC 4648: no digit that can be taken for a letter. Its 32 characters take 5 bits of a byte each.
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

const FORM = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)

/** Whether a text could be a recovery code. */
export function isRecoveryCodeForm(text: string): boolean {
  return FORM.test(text)
}

/** Returns new codes, all different. */
export function generateRecoveryCodes(): string[] {
  const codes = new Set<string>()
  while (codes.size < CODE_COUNT) codes.add(generateCode())
  return [...codes]
}

function generateCode(): string {
  return Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte & 31]).join('')
}

/** Returns the codes without the one that was used, or undefined if it is none of them. Takes the same time for each. */
export function removeRecoveryCode(codes: readonly string[], code: string): string[] | undefined {
  const remaining = codes.filter((candidate) => !isEqualInConstantTime(candidate, code))
  return remaining.length < codes.length ? remaining : undefined
}
