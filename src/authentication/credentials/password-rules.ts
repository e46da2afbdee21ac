// The password rules of auth policies.
import { invalidError } from '../../foundation/errors.ts'
import type { AuthPolicy } from '../auth-policies.ts'

type PasswordPolicy = AuthPolicy['primary']['updb']

interface Rule {
  isRequired(policy: PasswordPolicy): boolean
  isMet(password: string, policy: PasswordPolicy): boolean
  /** The end of a sentence that begins with the field. */
  reason(policy: PasswordPolicy): string
}

const rules: readonly Rule[] = [
  {
    isRequired: () => true,
    isMet: (password, { minPasswordLength }) => [...password].length >= minPasswordLength,
    reason: ({ minPasswordLength }) => `must be at least ${minPasswordLength} characters long`,
  },
  {
    isRequired: (policy) => policy.requireMixedCase,
    isMet: (password) => /\p{Lu}/u.test(password) && /\p{Ll}/u.test(password),
    reason: () => 'must hold upper-case and lower-case letters',
  },
  {
    isRequired: (policy) => policy.requireNumberChar,
    isMet: (password) => /\p{Nd}/u.test(password),
    reason: () => 'must hold a digit',
  },
  {
    isRequired: (policy) => policy.requireSpecialChar,
    isMet: (password) => /[^\p{L}\p{N}\s]/u.test(password),
    reason: () => 'must hold a character that is neither letter, digit nor space',
  },
]

/** @throws COULD_NOT_VALIDATE with the first violated rule; the password is never part of it */
export function assertPasswordPolicy(password: string, { primary: { updb } }: AuthPolicy): void {
  const violatedRule = rules.find((rule) => rule.isRequired(updb) && !rule.isMet(password, updb))
  if (violatedRule) throw invalidError('password', violatedRule.reason(updb))
}
