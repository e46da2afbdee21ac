// What the exit code of a command says; the same for every command.
import { RequestFailed } from '../src/client/client.ts'
import { Unreachable } from '../src/client/http-transport.ts'

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

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof Unreachable) return EXIT.tryLater
  if (error instanceof RequestFailed) return ofRequest(error)
  const oclifCode = (error as { oclif?: { exit?: number } }).oclif?.exit
  return typeof oclifCode === 'number' ? oclifCode : EXIT.failed
}

function ofRequest({ status, causeCode, field, reason }: RequestFailed): number {
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
