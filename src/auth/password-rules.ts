// What an auth policy demands of passwords, wherever one is set.
import { invalidError } from '../errors.ts'
import type { AuthPolicy } from './auth-policies.ts'

type PasswordPolicy = AuthPolicy['primary']['updb']

interface Rule {
  isDemanded(policy: PasswordPolicy): boolean
  isMet(password: string, policy: PasswordPolicy): boolean
  /** The end of a sentence that begins with the field. */
  reason(policy: PasswordPolicy): string
}

const rules: readonly Rule[] = [
  {
    isDemanded: () => true,
    isMet: (password, { minPasswordLength }) => [...password].length >= minPasswordLength,
    reason: ({ minPasswordLength }) => `must be at least ${minPasswordLength} characters long`,
  },
  {
    isDemanded: (policy) => policy.requireMixedCase,
    isMet: (password) => /\p{Lu}/u.test(password) && /\p{Ll}/u.test(password),
    reason: () => 'must hold upper-case and lower-case letters',
  },
  {
    isDemanded: (policy) => policy.requireNumberChar,
    isMet: (password) => /\p{Nd}/u.test(password),
    reason: () => 'must hold a digit',
  },
  {
    isDemanded: (policy) => policy.requireSpecialChar,
    isMet: (password) => /[^\p{L}\p{N}\s]/u.test(password),
    reason: () => 'must hold a character that is neither letter, digit nor space',
  },
]

/** @throws COULD_NOT_VALIDATE with the first rule that is broken; the password is never part of it */
export function assertPasswordPolicy(password: string, { primary: { updb } }: AuthPolicy): void {
  const broken = rules.find((rule) => rule.isDemanded(updb) && !rule.isMet(password, updb))
  if (broken) throw invalidError('password', broken.reason(updb))
}
