// Operations of identities on their own authenticators: read them, and change username and password.

import { authenticators } from '../../definitions/resources/authenticators.ts'
import { errors, notFoundError } from '../../foundation/errors.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { type FailedSignInParts, recordWrongPassword } from '../sign-in/failed-sign-ins.ts'
import { type Authenticator, PasswordChangedError, wrongPasswordError } from './authenticator-behavior.ts'
import type { PasswordHasher } from './password-hasher.ts'

/** The parts that compare and change a password. */
export interface OwnAuthenticatorParts extends FailedSignInParts {
  readonly auth: FailedSignInParts['auth'] & { readonly passwordHasher: PasswordHasher }
}

export interface OwnAuthenticatorChange {
  readonly username?: string
  readonly password?: string
  readonly tags?: Record<string, unknown>
  readonly currentPassword: string
}

/** @throws NOT_FOUND if it does not exist, or belongs to another identity */
export async function getOwnAuthenticator(context: Context, identityId: string, id: string): Promise<Authenticator> {
  const authenticator = await find(context, authenticators, id)
  if (authenticator?.identityId !== identityId) throw notFoundError('authenticator', id)
  return authenticator
}

/**
 * Changes a password authenticator on behalf of its owner. A new password ends the other sessions of the owner. A change of
 * nothing only checks the current password, and is not recorded.
 * @throws NOT_FOUND, CAN_NOT_UPDATE_AUTHENTICATOR, UNAUTHORIZED if the current password is wrong, and what the rules of
 * usernames and passwords throw
 */
export async function changeOwnAuthenticator(
  parts: OwnAuthenticatorParts,
  context: Context,
  identityId: string,
  id: string,
  how: 'replace' | 'patch',
  change: OwnAuthenticatorChange,
): Promise<void> {
  try {
    await compareAndChange(parts, context, identityId, id, how, change)
  } catch (error) {
    if (!(error instanceof PasswordChangedError)) throw error
    // A sign-in may have stored a stronger hash of the same password. If it is another password, the repetition refuses it.
    await compareAndChange(parts, context, identityId, id, how, change)
  }
}

async function compareAndChange(
  parts: OwnAuthenticatorParts,
  context: Context,
  identityId: string,
  id: string,
  how: 'replace' | 'patch',
  { currentPassword, ...values }: OwnAuthenticatorChange,
): Promise<void> {
  const { method, passwordHash } = await getOwnAuthenticator(context, identityId, id)
  if (method !== 'updb') {
    throw errors.CAN_NOT_UPDATE_AUTHENTICATOR({ message: 'a certificate has neither username nor password' })
  }
  if (!(await parts.auth.passwordHasher.verify(passwordHash ?? undefined, currentPassword, context))) {
    // A stolen session must not allow more guesses than sign-ins do.
    await recordWrongPassword(parts, context, id)
    throw wrongPasswordError()
  }
  // Wrong passwords of sign-ins before it may have locked the identity.
  await parts.auth.failedSignIns.settle(id)
  if (Object.keys(values).length === 0) return
  await parts.entities[how](context, authenticators, id, { ...values, provenHash: passwordHash })
}
