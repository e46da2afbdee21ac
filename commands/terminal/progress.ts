// A progress bar on stderr for long lists, only on a terminal.
import type { Format } from './formats.ts'

// Shorter work does not need a bar.
const SHOW_AFTER_MS = 400
const REDRAW_INTERVAL_MS = 100
const BAR_WIDTH = 24

/**
 * Yields the items, and draws a bar while they arrive, if stderr is a terminal and stdout is not a terminal that shows the
 * items one by one.
 * @param total fetches the number of items; called when the bar is first drawn
 */
export async function* withProgress(
  items: AsyncIterable<unknown>,
  noun: string,
  format: Format | undefined,
  total: () => Promise<number | undefined>,
): AsyncIterable<unknown> {
  const isIncremental = format === 'json' || format === 'jsonl' || format === 'name'
  if (process.stderr.isTTY !== true || (process.stdout.isTTY === true && isIncremental)) {
    yield* items
    return
  }
  let count = 0
  let totalCount: number | undefined
  let nextDrawAt = performance.now() + SHOW_AFTER_MS
  let isDrawn = false
  try {
    for await (const item of items) {
      count++
      if (performance.now() >= nextDrawAt) {
        if (!isDrawn)
          void total().then(
            (fetchedCount) => (totalCount = fetchedCount),
            () => undefined,
          )
        isDrawn = true
        process.stderr.write(`\r\u001b[K${renderBar(noun, count, totalCount)}`)
        nextDrawAt = performance.now() + REDRAW_INTERVAL_MS
      }
      yield item
    }
  } finally {
    if (isDrawn) process.stderr.write('\r\u001b[K')
  }
}

function renderBar(noun: string, count: number, totalCount: number | undefined): string {
  const label = noun.replaceAll('-', ' ')
  if (totalCount === undefined || totalCount === 0) return `${label} ${count}`
  const filled = Math.min(BAR_WIDTH, Math.floor((count / totalCount) * BAR_WIDTH))
  return `${label} [${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}] ${count} of ${totalCount}`
}
