// The errors after which a command that runs for long goes on.
import { UnreachableError } from '../../src/client/http-transport.ts'
import { EXIT, toExitCode } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'

/** Whether the controller may accept the same request later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof RequestError) return toExitCode(error) === EXIT.tryLater
  return error instanceof UnreachableError && !error.isUntrusted
}
