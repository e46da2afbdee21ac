// A time limit for synchronous work, including regular expressions and recursion.
import { createContext, Script } from 'node:vm'

/** The work took longer than it may. */
export class TimeLimitError extends Error {
  constructor() {
    super('it takes too long')
    this.name = 'TimeLimitError'
  }
}

// Only the timeout of a `vm` script can interrupt a regular expression.
const script = new Script('result = work()')
const context = createContext({ work: undefined, result: undefined })

/** Runs `work` and stops it after the limit; costs about 60 µs. @throws TimeLimitError, and what `work` throws */
export function runWithin<T>(milliseconds: number, work: () => T): T {
  context.work = work
  try {
    script.runInContext(context, { timeout: milliseconds })
    return context.result as T
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw new TimeLimitError()
    throw error
  } finally {
    context.work = undefined
    context.result = undefined
  }
}
