// Renders tables: dense, with the name first, and on a terminal no wider than it.
import { type Entity, getColumnValue, renderCell, type Screen, splitWords } from './cells.ts'

/** A table with one row per record. On a terminal, the widest cells are cut until it fits, unless it may be wider. */
export async function renderTable(
  records: AsyncIterable<Entity> | Iterable<Entity>,
  columns: readonly string[],
  screen: Screen,
  isWide = false,
): Promise<string> {
  const rows: string[][] = []
  for await (const record of records) {
    rows.push(columns.map((name) => renderCell(name, getColumnValue(record, name), screen)))
  }
  const lines = [columns.map((name) => splitWords(name, '-').toUpperCase()), ...rows]
  const measureWidth = await createWidthMeter(lines)
  const naturalWidths = columns.map((_, at) =>
    lines.reduce((max, line) => Math.max(max, measureWidth(line[at] ?? '')), 0),
  )
  const widths = screen.isTerminal && !isWide ? fitWidths(naturalWidths, screen.width) : naturalWidths
  return lines
    .map(
      (line) =>
        `${line
          .map((text, at) => fitText(text, widths[at] ?? 0, measureWidth))
          .join(GAP)
          .trimEnd()}\n`,
    )
    .join('')
}

const GAP = '  '
const ELLIPSIS = '…'
const MIN_COLUMN_WIDTH = 4

/** Reduces the widths of columns until they fit the screen, the widest first. */
function fitWidths(naturalWidths: readonly number[], screenWidth: number): number[] {
  const widths = [...naturalWidths]
  let spare = screenWidth - GAP.length * (widths.length - 1) - widths.reduce((sum, width) => sum + width, 0)
  while (spare < 0) {
    const widest = Math.max(...widths)
    if (widest <= MIN_COLUMN_WIDTH) break
    const at = widths.lastIndexOf(widest)
    const next = Math.max(MIN_COLUMN_WIDTH, ...widths.filter((width) => width < widest))
    const reduction = Math.max(1, Math.min(widest - next, -spare))
    widths[at] = widest - reduction
    spare += reduction
  }
  return widths
}

/** The text in a column: padded, or cut if it is too long. */
function fitText(text: string, width: number, measureWidth: (text: string) => number): string {
  const missing = width - measureWidth(text)
  if (missing >= 0) return text + ' '.repeat(missing)
  let cut = ''
  for (const character of text) {
    if (measureWidth(cut + character) > width - 1) break
    cut += character
  }
  return cut + ELLIPSIS + ' '.repeat(Math.max(0, width - 1 - measureWidth(cut)))
}

/**
 * Returns a function that measures the width of a text in columns. The library for it is loaded only if a text is not
 * ASCII.
 */
async function createWidthMeter(lines: readonly (readonly string[])[]): Promise<(text: string) => number> {
  const isAscii = lines.every((line) => line.every((text) => /^[\x20-\x7e]*$/.test(text)))
  if (isAscii) return (text) => text.length
  const { default: stringWidth } = await import('string-width')
  return stringWidth
}
