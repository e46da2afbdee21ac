// What signals do during work that must not stop half-way, or must leave nothing behind.
import { constants } from 'node:os'
import { EXIT } from './exit-codes.ts'

/** Runs `work` to its end. The first Ctrl-C only prints the warning, the second one ends the process. */
export async function delayInterrupt<T>(warning: string, work: () => Promise<T>): Promise<T> {
  const listeners = process.rawListeners('SIGINT') as (() => void)[]
  let isWarned = false
  const warn = () => {
    if (isWarned) process.exit(EXIT.interrupted)
    isWarned = true
    process.stderr.write(`${warning}\n`)
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

/** Runs `work`, during which SIGTERM and SIGHUP exit the process as Ctrl-C does, so that its temporary files are removed. */
export async function exitOnSignals<T>(work: () => Promise<T>): Promise<T> {
  const exit = (signal: NodeJS.Signals) => process.exit(SIGNAL_EXIT_BASE + constants.signals[signal])
  for (const signal of TERMINATING_SIGNALS) process.on(signal, exit)
  try {
    return await work()
  } finally {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, exit)
  }
}

const TERMINATING_SIGNALS = ['SIGTERM', 'SIGHUP'] as const
// Shells report the exit of a process by a signal as 128 and its number.
const SIGNAL_EXIT_BASE = 128
