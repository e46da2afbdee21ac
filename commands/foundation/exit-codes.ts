// The exit codes of all commands, and the errors that carry them.

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  signInFirst: 4,
  notFound: 5,
  conflict: 6,
  notPermitted: 7,
  tryLater: 8,
  interrupted: 130,
} as const

/** The texts of `controller help exit-codes`. */
export const exitCodeMeanings: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, 'done'],
  [EXIT.failed, 'failed'],
  [EXIT.usage, 'wrong usage, or rejected as invalid'],
  [EXIT.denied, 'differences found, or access denied'],
  [EXIT.signInFirst, 'sign in first, or the session expired'],
  [EXIT.notFound, 'not found'],
  [EXIT.conflict, 'conflict: exists already, or in use'],
  [EXIT.notPermitted, 'not permitted'],
  [EXIT.tryLater, 'busy, locked or unreachable: try again later'],
  [EXIT.interrupted, 'interrupted'],
]

/** A failure that a command detects itself: what is wrong, and what to do. */
export class CommandError extends Error {
  readonly exitCode: number
  readonly code: string
  readonly hint: string | undefined
  readonly field: string | undefined
  /** By which oclif takes it for a failure wherever it is thrown. */
  readonly oclif: { readonly exit: number }

  constructor(
    exitCode: number,
    code: string,
    message: string,
    { hint, field }: { hint?: string; field?: string } = {},
  ) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
    this.oclif = { exit: exitCode }
    this.code = code
    this.hint = hint
    this.field = field
  }
}

/** An error in the command line: exit code 2. */
export function makeUsageError(message: string, more: { hint?: string; field?: string } = {}): CommandError {
  return new CommandError(EXIT.usage, 'USAGE', message, more)
}

/** The members of an error response that determine the exit code. */
interface ErrorResponse {
  readonly status: number
  readonly causeCode: string | undefined
  readonly isDuplicate: boolean
}

/** The exit code for an error response of the controller. */
export function toExitCode({ status, causeCode, isDuplicate }: ErrorResponse): number {
  switch (status) {
    case 401:
      return causeCode === 'PERMISSION_DENIED' ? EXIT.notPermitted : EXIT.signInFirst
    case 403:
      return EXIT.notPermitted
    case 404:
      return EXIT.notFound
    case 409:
      return EXIT.conflict
    case 408:
    case 429:
    case 503:
      return EXIT.tryLater
    default:
      // The API reports a duplicate name as an invalid value; for scripts it is a conflict.
      if (status === 400 && isDuplicate) return EXIT.conflict
      return status >= 400 && status < 500 ? EXIT.usage : EXIT.failed
  }
}
