// Checks of a request's head. They run in one hook, because a hook of its own costs more than most checks do.
import type { ServedReply, ServedRequest } from '../exchange.ts'

/** Returns or throws why a request is refused; undefined if it is not. It waits for nothing. */
export type Check = (request: ServedRequest, reply: ServedReply) => Error | undefined

/** A hook that runs checks in this order. The first refusal is sent, and the checks after it do not run. */
export function runInOrder(checks: readonly Check[]) {
  return (request: ServedRequest, reply: ServedReply, done: (refusal?: Error) => void): void => {
    done(findRefusal(checks, request, reply))
  }
}

/** What the first check that refuses returned or threw. */
export function findRefusal(checks: readonly Check[], request: ServedRequest, reply: ServedReply): Error | undefined {
  try {
    for (const check of checks) {
      const refusal = check(request, reply)
      if (refusal) return refusal
    }
    return undefined
  } catch (refusal) {
    return refusal as Error
  }
}
