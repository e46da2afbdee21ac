// A limit for work that runs synchronously, whatever it does: regular expressions and recursion included.
import { createContext, Script } from 'node:vm'

/** The work took longer than it may. */
export class TimeLimitError extends Error {
  constructor() {
    super('it takes too long')
    this.name = 'TookTooLong'
  }
}

// The runtime can interrupt what a script of its own began, and nothing else can stop a regular expression.
const script = new Script('result = work()')
const context = createContext({ work: undefined, result: undefined })

/** Runs `work` and stops it after the limit; costs some 60 µs. @throws TookTooLong, and what the work throws */
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
