// How far long work has come, for a person at a terminal; silent everywhere else.
import type { Format } from './output/formats.ts'

// Work that is done by then needs no bar.
const SHOW_AFTER_MS = 400
const REDRAW_INTERVAL_MS = 100
const BAR_WIDTH = 24

/**
 * The same items, with a bar on stderr while they arrive: where stderr is a terminal, and stdout does not already show them
 * one by one.
 * @param total asked once the work turns out to be long
 */
export async function* withProgress(
  items: AsyncIterable<unknown>,
  noun: string,
  format: Format | undefined,
  total: () => Promise<number | undefined>,
): AsyncIterable<unknown> {
  const isShown = format === 'json' || format === 'jsonl' || format === 'name'
  if (process.stderr.isTTY !== true || (process.stdout.isTTY === true && isShown)) {
    yield* items
    return
  }
  let count = 0
  let most: number | undefined
  let next = performance.now() + SHOW_AFTER_MS
  let isDrawn = false
  try {
    for await (const item of items) {
      count++
      if (performance.now() >= next) {
        if (!isDrawn)
          void total().then(
            (known) => (most = known),
            () => undefined,
          )
        isDrawn = true
        process.stderr.write(`\r\u001b[K${barText(noun, count, most)}`)
        next = performance.now() + REDRAW_INTERVAL_MS
      }
      yield item
    }
  } finally {
    if (isDrawn) process.stderr.write('\r\u001b[K')
  }
}

function barText(noun: string, count: number, most: number | undefined): string {
  const spoken = noun.replaceAll('-', ' ')
  if (most === undefined || most === 0) return `${spoken} ${count}`
  const done = Math.min(BAR_WIDTH, Math.floor((count / most) * BAR_WIDTH))
  return `${spoken} [${'#'.repeat(done)}${'-'.repeat(BAR_WIDTH - done)}] ${count} of ${most}`
}
