// Says what an error of the system means, without its code and the call that failed.
import { getSystemErrorMap } from 'node:util'

/** The reason of an error of the system, as the end of a sentence. An error of another kind is returned as its message. */
export function describeSystemError(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message
}
