// The results by which routers learn that a terminator is refused, with the reason, and whether the host should try again.
import type { RequestRefusalReason, RequestRefusedError } from '../../src/network/client-requests/request-refused.ts'
import type { ConnectedRouter } from '../../src/network/routers/connected-routers.ts'
import { REFUSAL_CODES } from './edge-errors.ts'
import { CreateTerminatorResult } from './messages/edge_pb.ts'

/** The results that routers tell apart; everything else is `FailedOther`. */
const CREATE_RESULTS: Readonly<Partial<Record<RequestRefusalReason, CreateTerminatorResult>>> = {
  'id-conflict': CreateTerminatorResult.FailedIdConflict,
  busy: CreateTerminatorResult.FailedBusy,
  'unknown-session': CreateTerminatorResult.FailedInvalidSession,
}

/** The reaction of routers of release 2, or of their clients, to a refusal. By default the router gives up after the third one. */
const RetryHint = { DEFAULT: 0, TOO_BUSY: 1, START_OVER: 2, NOT_RETRIABLE: 3 } as const

const RETRY_HINTS: Readonly<Record<RequestRefusalReason, number>> = {
  'unknown-api-session': RetryHint.START_OVER,
  'unknown-session': RetryHint.START_OVER,
  'wrong-session-type': RetryHint.START_OVER,
  'router-not-permitted': RetryHint.START_OVER,
  'unknown-service': RetryHint.NOT_RETRIABLE,
  'tunneling-not-enabled': RetryHint.NOT_RETRIABLE,
  'unknown-terminator': RetryHint.NOT_RETRIABLE,
  'invalid-precedence': RetryHint.NOT_RETRIABLE,
  'invalid-cost': RetryHint.NOT_RETRIABLE,
  'encryption-data-missing': RetryHint.NOT_RETRIABLE,
  'id-conflict': RetryHint.NOT_RETRIABLE,
  busy: RetryHint.TOO_BUSY,
  other: RetryHint.DEFAULT,
}

/** Routers of release 2 choose another id only for a conflict within themselves. */
export function toFailedResult(
  { reason, message }: Pick<RequestRefusedError, 'reason' | 'message'>,
  { hello }: ConnectedRouter,
) {
  const isConflict = reason === 'id-conflict' && hello.hasDataModel
  const result = isConflict ? undefined : CREATE_RESULTS[reason]
  return {
    result: result ?? CreateTerminatorResult.FailedOther,
    msg: message,
    errorCode: REFUSAL_CODES[reason],
    retryHint: RETRY_HINTS[reason],
  }
}
