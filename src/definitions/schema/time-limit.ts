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
const MICROSECONDS_PER_MS = 1000

/**
 * Runs `work` and stops it after the limit; costs about 60 µs. If the processor was busy with others meanwhile, it runs once
 * more, for four times as long: `work` has no effects. @throws TimeLimitError, and what `work` throws
 */
export function runWithin<T>(milliseconds: number, work: () => T): T {
  const readCpuMs = startCpuClock()
  try {
    return runOnce(milliseconds, work)
  } catch (error) {
    const wasStarved = readCpuMs() < milliseconds
    if (error instanceof TimeLimitError && wasStarved) return runOnce(MORE_TIME * milliseconds, work)
    throw error
  }
}

/** Returns a function that reads the CPU time which this process has taken since, in milliseconds. */
export function startCpuClock(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / MICROSECONDS_PER_MS
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
