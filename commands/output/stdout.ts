// The output of this process: how wide and how colourful it is, and a way to write no faster than it is read.
import type { Output } from './formats.ts'

// What a terminal is taken for that does not tell its width.
const USUAL_WIDTH = 80

export function openStdout(): Output {
  const { stdout, env } = process
  const isTerminal = stdout.isTTY === true
  return {
    isTerminal,
    width: stdout.columns || USUAL_WIDTH,
    hasColour: isTerminal && !env.NO_COLOR && env.TERM !== 'dumb',
    write(text) {
      if (text === '' || stdout.destroyed) return Promise.resolve()
      return new Promise((resolve) => {
        if (stdout.write(text)) resolve()
        else stdout.once('drain', resolve)
      })
    },
  }
}
