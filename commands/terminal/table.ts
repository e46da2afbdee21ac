// Renders tables with cli-table3: without borders, with the name first, and on a terminal no wider than it.
import { stripVTControlCharacters } from 'node:util'
import { getColumnValue, type OutputRecord, renderCell, type Screen, splitWords } from './cells.ts'

/** A table with one row per record. On a terminal, the widest cells are cut until it fits, unless it may be wider. */
export async function renderTable(
  records: AsyncIterable<OutputRecord> | Iterable<OutputRecord>,
  columns: readonly string[],
  screen: Screen,
  isWide = false,
): Promise<string> {
  const rows: string[][] = []
  for await (const record of records) {
    rows.push(columns.map((name) => renderCell(name, getColumnValue(record, name), screen)))
  }
  const lines = [columns.map((name) => splitWords(name, '-').toUpperCase()), ...rows]
  const { default: Table } = await import('cli-table3')
  const renderBlock = (block: readonly (readonly string[])[], colWidths: number[]) => {
    const table = new Table({ chars: BORDERLESS, style: STYLE, colWidths })
    table.push(...block.map((line) => [...line]))
    return { text: table.toString(), widths: table.options.colWidths }
  }
  const measureWidth = (text: string) => {
    const plainText = stripVTControlCharacters(text)
    return IS_ASCII.test(plainText) ? plainText.length : (renderBlock([[text]], []).widths[0] ?? 0) - GAP.length
  }
  const naturalWidths = columns.map((_, at) =>
    lines.reduce((max, line) => Math.max(max, measureWidth(line[at] ?? '')), 0),
  )
  const widths =
    screen.isTerminal && !isWide ? fitWidths(naturalWidths, columns.indexOf('id'), screen.width) : naturalWidths
  const blocks = Array.from({ length: Math.ceil(lines.length / BLOCK_LENGTH) }, (_, at) =>
    lines.slice(at * BLOCK_LENGTH, (at + 1) * BLOCK_LENGTH),
  )
  const colWidths = widths.map((width) => width + GAP.length)
  return blocks.map((block) => `${trimLineEnds(renderBlock(block, colWidths).text)}\n`).join('')
}

function trimLineEnds(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

// The library compares each row with those above it, so that one table of all rows would take too long.
const BLOCK_LENGTH = 50
const IS_ASCII = /^[\x20-\x7e]*$/
const GAP = '  '
const MIN_COLUMN_WIDTH = 4

const BORDERLESS = Object.fromEntries(
  ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right', 'left']
    .concat(['left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
    .map((name) => [name, '']),
)
const STYLE = { 'padding-left': 0, 'padding-right': GAP.length, head: [], border: [], compact: true }

/**
 * Reduces the widths of columns until they fit the screen, the widest first.
 * @param whole the index of the column that other commands take the values of, which is never cut; -1 if there is none
 */
function fitWidths(naturalWidths: readonly number[], whole: number, screenWidth: number): number[] {
  const widths = [...naturalWidths]
  let spare = screenWidth - GAP.length * (widths.length - 1) - widths.reduce((sum, width) => sum + width, 0)
  while (spare < 0) {
    const reducible = widths.map((width, at) => (at === whole ? 0 : width))
    const widest = Math.max(...reducible)
    if (widest <= MIN_COLUMN_WIDTH) break
    const at = reducible.lastIndexOf(widest)
    const next = Math.max(MIN_COLUMN_WIDTH, ...reducible.filter((width) => width < widest))
    const reduction = Math.max(1, Math.min(widest - next, -spare))
    widths[at] = widest - reduction
    spare += reduction
  }
  return widths
}
