// The stdout of this process as a destination of results, with backpressure.
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { hasColors } from './colors.ts'
import type { Output } from './formats.ts'

// The width of a terminal that does not report one.
const DEFAULT_WIDTH = 80

/** Stdout, with the width and the colors of its terminal. */
export function openStdout(): Output {
  const { stdout } = process
  return {
    isTerminal: stdout.isTTY === true,
    width: stdout.columns || DEFAULT_WIDTH,
    hasColor: hasColors(stdout),
    write(text) {
      if (text === '' || stdout.destroyed) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const isAccepted = stdout.write(text, (error) => {
          // A reader that closes the pipe ends the process, see `main`.
          if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') reject(toOutputError(error))
        })
        if (isAccepted) resolve()
        else stdout.once('drain', resolve)
      })
    },
  }
}

/** The code of the error if a result cannot be written to stdout. */
export const OUTPUT_LOST = 'OUTPUT_LOST'

function toOutputError(error: Error): CommandError {
  return new CommandError(EXIT.failed, OUTPUT_LOST, `stdout cannot be written: ${describeFileError(error, 'stdout')}`, {
    hint: 'write to another disk, or free some space; what the command has changed stays changed',
  })
}
