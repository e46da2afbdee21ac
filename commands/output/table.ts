// Tables: with lines on a terminal and as wide as it at most, plain columns everywhere else.
import { type Entity, getColumnValue, renderCell, type Screen, splitWords, toName } from './cells.ts'

/** A list as a table: a row a record. */
export async function renderTable(
  records: AsyncIterable<Entity> | Iterable<Entity>,
  columns: readonly string[],
  screen: Screen,
): Promise<string> {
  const rows: string[][] = []
  for await (const record of records) {
    rows.push(columns.map((name) => renderCell(name, getColumnValue(record, name), screen)))
  }
  return screen.isTerminal ? drawn(columns, rows, screen) : aligned(columns, rows)
}

async function drawn(columns: readonly string[], rows: readonly string[][], screen: Screen): Promise<string> {
  const { default: Table } = await import('cli-table3')
  const titles = columns.map((name) => splitWords(name, ' '))
  const widthOf = await widthMeter([titles, ...rows])
  const wanted = titles.map((title, at) => Math.max(widthOf(title), ...rows.map((row) => widthOf(row[at] ?? ''))))
  const colWidths = fitWidths(wanted, screen.width).map((width) => width + PADDING)
  const table = new Table({ head: titles, colWidths, style: { head: [], border: [] } })
  for (const row of rows) table.push(row)
  return `${table.toString()}\n`
}

// A blank on either side of a cell.
const PADDING = 2
const MIN_COLUMN_WIDTH = 4

/** Widths of columns that fit: the widest gives way first. */
function fitWidths(wanted: readonly number[], screenWidth: number): number[] {
  const widths = [...wanted]
  const lines = widths.length + 1
  let spare = screenWidth - lines - widths.reduce((sum, width) => sum + width + PADDING, 0)
  while (spare < 0) {
    const widest = Math.max(...widths)
    if (widest <= MIN_COLUMN_WIDTH) break
    const at = widths.lastIndexOf(widest)
    const next = Math.max(MIN_COLUMN_WIDTH, ...widths.filter((width) => width < widest))
    const less = Math.max(1, Math.min(widest - next, -spare))
    widths[at] = widest - less
    spare += less
  }
  return widths
}

async function aligned(columns: readonly string[], rows: readonly string[][]): Promise<string> {
  const lines = [columns.map((name) => splitWords(name, '-').toUpperCase()), ...rows]
  const widthOf = await widthMeter(lines)
  const widths = columns.map((_, at) => lines.reduce((most, line) => Math.max(most, widthOf(line[at] ?? '')), 0))
  return lines
    .map(
      (line) =>
        `${line
          .map((text, at) => padded(text, (widths[at] ?? 0) - widthOf(text)))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function padded(text: string, missing: number): string {
  return text + ' '.repeat(Math.max(0, missing))
}

/** How many places a text takes on the screen; the library for it is loaded where letters differ in width. */
async function widthMeter(lines: readonly (readonly string[])[]): Promise<(text: string) => number> {
  const isAscii = lines.every((line) => line.every((text) => /^[\x20-\x7e]*$/.test(text)))
  if (isAscii) return (text) => text.length
  const { default: stringWidth } = await import('string-width')
  return stringWidth
}

/** One record for people: a line a member, what is inside of it below and further in. */
export function renderRecord(record: Entity, screen: Screen): string {
  const lines = linesOf(record, '', screen)
  const width = Math.max(0, ...lines.map(({ label }) => label.length))
  return lines
    .map(({ label, value }) => `${label.padEnd(width)}  ${value}`.trimEnd())
    .join('\n')
    .concat('\n')
}

interface Line {
  readonly label: string
  readonly value: string
}

function linesOf(record: Entity, indent: string, screen: Screen): Line[] {
  return Object.keys(record).flatMap((name) => {
    // Links are for programs; the display lists are shown in place of the roles they belong to.
    if (name === '_links' || name.endsWith('Display')) return []
    const shown = getColumnValue(record, name)
    const label = indent + splitWords(name, ' ')
    if (isOpened(shown)) return [{ label, value: '' }, ...linesOf(shown as Entity, `${indent}  `, screen)]
    const id = typeof shown === 'object' && shown !== null && !Array.isArray(shown) ? (shown as Entity).id : undefined
    const text = renderCell(name, shown, screen)
    return [{ label, value: id === undefined || id === text ? text : `${text} (${String(id)})` }]
  })
}

/** A value with members of its own that is no reference to a record. */
function isOpened(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return toName(value as Entity) === undefined && Object.keys(value).length > 0
}
