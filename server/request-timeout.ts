// How long callers wait for an answer at the most.
import { errors } from '../src/errors.ts'

const RETRY_AFTER_SECONDS = 5

/**
 * What `answering` gives, within so many milliseconds. Work that takes longer is not undone by that: a change that was on its way
 * may still be made. @throws TIMEOUT
 */
export async function withTimeout<T>(answering: T | Promise<T>, milliseconds: number): Promise<T> {
  if (!(answering instanceof Promise)) return answering
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const cause = `no answer within ${milliseconds} ms`
      reject(errors.TIMEOUT(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS }))
    }, milliseconds)
    answering.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
