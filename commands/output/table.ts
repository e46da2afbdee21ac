// Renders tables: with borders and at most as wide as the terminal, otherwise with plain columns.
import { type Entity, getColumnValue, renderCell, type Screen, splitWords, toName } from './cells.ts'

/** A table with one row per record. */
export async function renderTable(
  records: AsyncIterable<Entity> | Iterable<Entity>,
  columns: readonly string[],
  screen: Screen,
): Promise<string> {
  const rows: string[][] = []
  for await (const record of records) {
    rows.push(columns.map((name) => renderCell(name, getColumnValue(record, name), screen)))
  }
  return screen.isTerminal ? renderBordered(columns, rows, screen) : renderPlain(columns, rows)
}

async function renderBordered(columns: readonly string[], rows: readonly string[][], screen: Screen): Promise<string> {
  const { default: Table } = await import('cli-table3')
  const titles = columns.map((name) => splitWords(name, ' '))
  const measureWidth = await createWidthMeter([titles, ...rows])
  const naturalWidths = titles.map((title, at) =>
    Math.max(measureWidth(title), ...rows.map((row) => measureWidth(row[at] ?? ''))),
  )
  const colWidths = fitWidths(naturalWidths, screen.width).map((width) => width + PADDING)
  const table = new Table({ head: titles, colWidths, style: { head: [], border: [] } })
  for (const row of rows) table.push(row)
  return `${table.toString()}\n`
}

// One space on either side of a cell.
const PADDING = 2
const MIN_COLUMN_WIDTH = 4

/** Reduces the widths of columns until they fit the screen, the widest first. */
function fitWidths(naturalWidths: readonly number[], screenWidth: number): number[] {
  const widths = [...naturalWidths]
  const lines = widths.length + 1
  let spare = screenWidth - lines - widths.reduce((sum, width) => sum + width + PADDING, 0)
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

async function renderPlain(columns: readonly string[], rows: readonly string[][]): Promise<string> {
  const lines = [columns.map((name) => splitWords(name, '-').toUpperCase()), ...rows]
  const measureWidth = await createWidthMeter(lines)
  const widths = columns.map((_, at) => lines.reduce((max, line) => Math.max(max, measureWidth(line[at] ?? '')), 0))
  return lines
    .map(
      (line) =>
        `${line
          .map((text, at) => padText(text, (widths[at] ?? 0) - measureWidth(text)))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function padText(text: string, missing: number): string {
  return text + ' '.repeat(Math.max(0, missing))
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

/** A record with one line per member; the members of objects are indented below them. */
export function renderRecordLines(record: Entity, screen: Screen): string {
  const lines = toLines(record, '', screen)
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

function toLines(record: Entity, indent: string, screen: Screen): Line[] {
  return Object.keys(record).flatMap((name) => {
    // Links are for programs. Display lists are shown as the values of their roles.
    if (name === '_links' || name.endsWith('Display')) return []
    const value = getColumnValue(record, name)
    const label = indent + splitWords(name, ' ')
    if (isNested(value)) return [{ label, value: '' }, ...toLines(value as Entity, `${indent}  `, screen)]
    const id = typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entity).id : undefined
    const text = renderCell(name, value, screen)
    return [{ label, value: id === undefined || id === text ? text : `${text} (${String(id)})` }]
  })
}

/** Whether the value is an object with members that is not a reference to a record. */
function isNested(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return toName(value as Entity) === undefined && Object.keys(value).length > 0
}
