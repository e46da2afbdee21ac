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

// A busy machine may run this process for a fraction of the time only, and must not make valid data invalid.
const MORE_TIME = 4

/**
 * Runs `work` and stops it after the limit; costs about 60 µs. If the processor was busy with others meanwhile, it runs once
 * more, for four times as long: `work` has no effects. @throws TimeLimitError, and what `work` throws
 */
export function runWithin<T>(milliseconds: number, work: () => T): T {
  const before = process.cpuUsage()
  try {
    return runOnce(milliseconds, work)
  } catch (error) {
    const { user, system } = process.cpuUsage(before)
    const wasStarved = (user + system) / 1000 < milliseconds
    if (error instanceof TimeLimitError && wasStarved) return runOnce(MORE_TIME * milliseconds, work)
    throw error
  }
}

function runOnce<T>(milliseconds: number, work: () => T): T {
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
