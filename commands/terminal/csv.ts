// Renders records as comma-separated values (RFC 4180).
import { getColumnValue, type OutputRecord, renderCell, type Screen } from './cells.ts'

/** A line with the names of the columns. */
export function renderCsvHeader(columns: readonly string[]): string {
  return `${columns.map(quoteValue).join(',')}\r\n`
}

/** A line with the values of a record; a member without a value is empty. */
export function renderCsvLine(
  record: OutputRecord,
  columns: readonly string[],
  screen: Screen,
  hasFormulas: boolean,
): string {
  const plainScreen = { ...screen, isTerminal: false, hasColor: false }
  const values = columns.map((name) => {
    const value = getColumnValue(record, name)
    const isEmpty =
      value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
    return isEmpty ? '' : renderCell(name, value, plainScreen)
  })
  const cells = hasFormulas ? values : values.map(guardValue)
  return `${cells.map(quoteValue).join(',')}\r\n`
}

/** Spreadsheets take text with such a begin for a formula, and run it; a quote in front makes it text. Numbers stay numbers. */
function guardValue(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+$/.test(text) ? `'${text}` : text
}

function quoteValue(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
