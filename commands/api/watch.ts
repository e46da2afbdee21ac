// Repeats a command until it is interrupted.
import { setTimeout as delay } from 'node:timers/promises'

// Moves the cursor to the top left, and clears the screen.
const CLEAR_SCREEN = '\u001b[H\u001b[2J'

/** Runs `show` once, or every `seconds` until Ctrl-C ends the process. On a terminal each run replaces the one before it. */
export async function repeat(seconds: number | undefined, show: () => Promise<void>): Promise<void> {
  for (let isFirst = true; isFirst || seconds !== undefined; isFirst = false) {
    if (!isFirst) await delay((seconds as number) * 1_000)
    if (seconds !== undefined && process.stdout.isTTY === true) process.stdout.write(CLEAR_SCREEN)
    await show()
  }
}
