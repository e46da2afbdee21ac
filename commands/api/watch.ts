// Repeats a command until it is interrupted.
import { setTimeout as delay } from 'node:timers/promises'

// Moves the cursor to the top left, and clears the screen.
const CLEAR_SCREEN = '\u001b[H\u001b[2J'

/**
 * Runs `show` once, or every `seconds` until Ctrl-C ends the process. On a terminal each run replaces the one before it, below a
 * line with the time.
 */
export async function repeat(seconds: number | undefined, show: () => Promise<void>): Promise<void> {
  for (let isFirst = true; isFirst || seconds !== undefined; isFirst = false) {
    if (!isFirst) await delay((seconds as number) * 1_000)
    if (seconds !== undefined && process.stdout.isTTY === true) {
      const period = seconds === 1 ? 'every second' : `every ${seconds} seconds`
      process.stdout.write(`${CLEAR_SCREEN}${toClock(new Date())}, ${period} until Ctrl-C\n\n`)
    }
    await show()
  }
}

/** The time of the user's day: `14:03:27`. */
function toClock(time: Date): string {
  return time.toTimeString().slice(0, 8)
}
