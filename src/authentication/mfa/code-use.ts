// The use of a code: a change that it allows, or what follows if it is wrong. All of it is stored, because a restart must not
// allow more guesses.

import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { mfaEnrollments, type WrongCode } from '../../definitions/resources/mfa-enrollments.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import { get } from '../../storage/entities/entities.ts'
import { sourceFromAddress } from '../../storage/sources.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { recordWrongCode } from '../sign-in/failed-sign-ins.ts'
import type { MfaParts } from './mfa-records.ts'
import {
  type AcceptedCodes,
  type MfaEnrollment,
  type MfaOwner,
  type MfaSecrets,
  WrongCodeError,
} from './mfa-secrets.ts'
import { isRecoveryCodeForm } from './recovery-codes.ts'
import { addWrongCode, chooseShare } from './wrong-codes.ts'

const MAX_WRONG_CODES_PER_SESSION = 5
// The sources of one person: home, work, a phone. A further one replaces the one that was not used for the longest time.
const MAX_KNOWN_SOURCES = 20

/** A code that a session sends, and which codes its operation accepts. */
export interface CodeAttempt {
  readonly owner: MfaOwner
  readonly code: string
  readonly accepted: AcceptedCodes
  /** Returns the verified enrollment that the code is of. @throws ControllerError if there is none */
  requireEnrollment(tx: WriteContext): Promise<MfaEnrollment>
}

/** The changes that an accepted code makes to its enrollment. */
export type CodeUse = Partial<Pick<MfaEnrollment, 'lastUsedStep' | 'encryptedRecoveryCodes' | 'knownSources'>>

/**
 * Runs a change that a code of a verified enrollment allows. The change stores the use of the code. A wrong code is counted and
 * recorded, and changes nothing else, except that the fifth one of a session ends it.
 * @throws MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS if the identity sent too many wrong codes
 */
export async function changeWithCode<T>(
  parts: MfaParts,
  context: Context,
  attempt: CodeAttempt,
  change: (tx: WriteContext, enrollment: MfaEnrollment, use: CodeUse) => Promise<T>,
): Promise<T> {
  const result = await context.write(async (tx) => {
    const enrollment = await attempt.requireEnrollment(tx)
    const source = getSource(tx)
    const share = chooseShare(
      enrollment.wrongCodes,
      describeSender(tx, enrollment, attempt.code, source),
      tx.clock.now(),
    )
    const use = tryCode(parts.auth.mfaSecrets, tx, enrollment, attempt)
    // Not thrown, because the transaction stores the count.
    if (use instanceof WrongCodeError) {
      await countWrongCode(parts, tx, enrollment, { at: tx.clock.now(), share, source })
      await countInSession(parts, tx, attempt.owner)
      return use
    }
    await clearSessionCount(parts, tx, attempt.owner)
    const knownSources = addKnownSource(enrollment.knownSources, source)
    return { value: await change(tx, enrollment, { ...use, knownSources }) }
  })
  if (result instanceof WrongCodeError) throw await refuseWrongCode(parts, context, result)
  return result.value
}

/** Records a wrong code, and returns the error for its sender. */
export async function refuseWrongCode(
  parts: MfaParts,
  context: Context,
  wrongCode: WrongCodeError,
): Promise<ControllerError> {
  await recordWrongCode(parts, context, wrongCode)
  return errors.MFA_INVALID_TOKEN(undefined, { cause: wrongCode.message })
}

/** The source of the address of a request: sessions of one identity come from several. */
export function getSource({ origin }: Pick<Context, 'origin'>): string {
  return sourceFromAddress(origin.address ?? '')
}

function describeSender({ caller }: WriteContext, { knownSources }: MfaEnrollment, code: string, source: string) {
  return {
    source,
    isFullSession: caller.kind === 'identity' && !caller.isPartial,
    isKnownSource: knownSources.includes(source),
    isRecoveryCode: isRecoveryCodeForm(code),
  }
}

function tryCode(
  secrets: MfaSecrets,
  tx: WriteContext,
  enrollment: MfaEnrollment,
  { code, accepted }: CodeAttempt,
): CodeUse | WrongCodeError {
  try {
    return secrets.useCode(tx, enrollment, code, accepted)
  } catch (error) {
    if (error instanceof WrongCodeError) return error
    throw error
  }
}

function addKnownSource(sources: readonly string[], source: string): string[] {
  return [...sources.filter((known) => known !== source), source].slice(-MAX_KNOWN_SOURCES)
}

async function countWrongCode(
  { entities }: MfaParts,
  tx: WriteContext,
  enrollment: MfaEnrollment,
  wrongCode: WrongCode,
): Promise<void> {
  const wrongCodes = addWrongCode(enrollment.wrongCodes, wrongCode)
  await entities.update(tx, mfaEnrollments, enrollment, { wrongCodes }, { audit: 'none' })
}

async function countInSession({ entities }: MfaParts, tx: WriteContext, { apiSessionId }: MfaOwner): Promise<void> {
  const session = await get(tx, apiSessions, apiSessionId)
  const wrongCodeCount = session.wrongCodeCount + 1
  if (wrongCodeCount >= MAX_WRONG_CODES_PER_SESSION) await entities.removeAllIn(tx, apiSessions, [apiSessionId])
  else await entities.update(tx, apiSessions, session, { wrongCodeCount }, { audit: 'none' })
}

async function clearSessionCount({ entities }: MfaParts, tx: WriteContext, { apiSessionId }: MfaOwner): Promise<void> {
  const session = await get(tx, apiSessions, apiSessionId)
  if (session.wrongCodeCount > 0)
    await entities.update(tx, apiSessions, session, { wrongCodeCount: 0 }, { audit: 'none' })
}
