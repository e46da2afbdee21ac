// Tables: with lines on a terminal, plain columns everywhere else.

type Entity = Readonly<Record<string, unknown>>

export interface Column {
  readonly title: string
  value(entity: Entity): unknown
}

export async function tableText(
  rows: readonly Entity[],
  columns: readonly Column[],
  isTerminal: boolean,
): Promise<string> {
  const titles = columns.map(({ title }) => title)
  const cells = rows.map((row) => columns.map((column) => cellText(column.value(row))))
  return isTerminal ? drawn(titles, cells) : aligned(titles, cells)
}

async function drawn(titles: readonly string[], cells: readonly string[][]): Promise<string> {
  const { default: Table } = await import('cli-table3')
  const table = new Table({ head: [...titles], style: { head: [], border: [] } })
  for (const row of cells) table.push(row)
  return `${table.toString()}\n`
}

function aligned(titles: readonly string[], cells: readonly string[][]): string {
  const lines = [titles.map((title) => title.toUpperCase()), ...cells]
  const widths = titles.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cellText).join(', ')
  if (typeof value === 'object') return 'name' in value ? String(value.name) : JSON.stringify(value)
  // A control character could rewrite what the terminal shows.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]/g, '�')
}
