// Limits how long a caller waits for a response.
import { errors } from '../src/errors.ts'

const RETRY_AFTER_SECONDS = 5

/**
 * Returns the result of `work`. A timeout does not cancel it: a pending change may still commit.
 * @throws TIMEOUT if the work takes longer
 */
export function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const cause = `no response within ${timeoutMs} ms`
      reject(errors.TIMEOUT(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS }))
    }, timeoutMs)
    work.then(
      (result) => {
        clearTimeout(timer)
        resolve(result)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
