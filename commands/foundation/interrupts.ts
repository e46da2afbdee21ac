// Handles signals during work that must not stop half-way, or must leave nothing behind.
import { constants } from 'node:os'
import { EXIT } from './exit-codes.ts'

/**
 * Runs `work` to its end. The first Ctrl-C only prints the warning, and calls `stop`, which may end the work early; the second one
 * ends the process.
 */
export async function delayInterrupt<T>(
  warning: string | (() => string),
  work: () => Promise<T>,
  stop: () => void = () => {},
): Promise<T> {
  const listeners = process.rawListeners('SIGINT') as (() => void)[]
  let isWarned = false
  const warn = () => {
    if (isWarned) process.exit(EXIT.interrupted)
    isWarned = true
    process.stderr.write(`${clearLine()}${typeof warning === 'string' ? warning : warning()}\n`)
    stop()
  }
  process.removeAllListeners('SIGINT')
  process.on('SIGINT', warn)
  try {
    return await work()
  } finally {
    process.off('SIGINT', warn)
    for (const listener of listeners) process.on('SIGINT', listener)
  }
}

/** Runs `work`, which Ctrl-C ends at once with the message. */
export async function exitOnInterrupt<T>(message: string, work: () => Promise<T>): Promise<T> {
  const exit = () => {
    process.stderr.write(`${clearLine()}${message}\n`)
    process.exit(EXIT.interrupted)
  }
  process.on('SIGINT', exit)
  try {
    return await work()
  } finally {
    process.off('SIGINT', exit)
  }
}

/** The characters that remove the `^C` of a terminal, or a progress bar, before a message. */
function clearLine(): string {
  return process.stderr.isTTY === true ? '\r\u001b[K' : ''
}

/** Runs `work`, during which SIGTERM and SIGHUP exit the process as Ctrl-C does, so that its temporary files are removed. */
export async function exitOnSignals<T>(work: () => Promise<T>): Promise<T> {
  for (const signal of TERMINATING_SIGNALS) process.on(signal, exitBySignal)
  try {
    return await work()
  } finally {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, exitBySignal)
  }
}

const TERMINATING_SIGNALS = ['SIGTERM', 'SIGHUP'] as const
// Shells report the exit of a process by a signal as 128 and its number.
const SIGNAL_EXIT_BASE = 128

/** Exits as a signal would have it, after the listeners of `exit`. */
export function exitBySignal(signal: NodeJS.Signals): never {
  process.exit(SIGNAL_EXIT_BASE + constants.signals[signal])
}

/** Yields what `begin` returns, until Ctrl-C ends it as if there were no more. The signal then aborts what it waits for. */
export async function* untilInterrupt<T>(begin: (signal: AbortSignal) => AsyncGenerator<T>): AsyncGenerator<T> {
  const others = process.rawListeners('SIGINT') as (() => void)[]
  const stopped = new AbortController()
  const { signal } = stopped
  const stop = () => stopped.abort()
  const interrupted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
  process.removeAllListeners('SIGINT')
  process.on('SIGINT', stop)
  try {
    const items = begin(signal)
    for (;;) {
      const next = items.next()
      // It fails when the connection is closed, after this has ended.
      next.catch(() => {})
      const result = await Promise.race([next, interrupted])
      if (result === undefined || result.done) return
      yield result.value
    }
  } finally {
    process.off('SIGINT', stop)
    for (const listener of others) process.on('SIGINT', listener)
  }
}
