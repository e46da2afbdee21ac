// The stdout of this process as a destination of results, with backpressure.
import type { Output } from './formats.ts'

// The width of a terminal that does not report one.
const DEFAULT_WIDTH = 80

/** Stdout, with the width and the colors of its terminal. */
export function openStdout(): Output {
  const { stdout, env } = process
  const isTerminal = stdout.isTTY === true
  return {
    isTerminal,
    width: stdout.columns || DEFAULT_WIDTH,
    hasColor: isTerminal && !env.NO_COLOR && env.TERM !== 'dumb',
    write(text) {
      if (text === '' || stdout.destroyed) return Promise.resolve()
      return new Promise((resolve) => {
        if (stdout.write(text)) resolve()
        else stdout.once('drain', resolve)
      })
    },
  }
}
