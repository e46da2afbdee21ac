// What the exit code of a command says; the same for every command.

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

/** For `help exit-codes`. */
export const exitCodeMeanings: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, 'done'],
  [EXIT.failed, 'failed'],
  [EXIT.usage, 'wrong usage, or refused as invalid'],
  [EXIT.denied, 'differences found, or access denied'],
  [EXIT.signInFirst, 'sign in first, or the session expired'],
  [EXIT.notFound, 'not found'],
  [EXIT.conflict, 'conflict: exists already, or in use'],
  [EXIT.notPermitted, 'not permitted'],
  [EXIT.tryLater, 'busy, locked or unreachable: try again later'],
  [EXIT.interrupted, 'interrupted'],
]

/** A failure that a command itself finds: what is wrong, and what helps. */
export class CommandError extends Error {
  readonly exitCode: number
  readonly code: string
  readonly hint: string | undefined
  readonly field: string | undefined

  constructor(
    exitCode: number,
    code: string,
    message: string,
    { hint, field }: { hint?: string; field?: string } = {},
  ) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
    this.code = code
    this.hint = hint
    this.field = field
  }
}

/** The command line itself is wrong: exit code 2. */
export function makeUsageError(message: string, more: { hint?: string; field?: string } = {}): CommandError {
  return new CommandError(EXIT.usage, 'USAGE', message, more)
}

/** What an answer of the API says of a request that was refused. */
interface ErrorResponse {
  readonly status: number
  readonly causeCode: string | undefined
  readonly field: string | undefined
  readonly reason: string | undefined
}

/** The exit code for a request that the controller refused. */
export function toExitCode({ status, causeCode, field, reason }: ErrorResponse): number {
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
      // A name that is taken is a conflict for a script, although the API calls it invalid.
      if (status === 400 && field !== undefined && reason === 'is taken') return EXIT.conflict
      return status >= 400 && status < 500 ? EXIT.usage : EXIT.failed
  }
}
