// Delays Ctrl-C during work that must not stop half-way.
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
