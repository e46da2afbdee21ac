// Lays out help pages: wraps lines to the width of the terminal, up to a width that is easy to read.

const MAX_WIDTH = 110
const INDENT = '  '

function getWidth(): number {
  return Math.min(process.stdout.columns || MAX_WIDTH, MAX_WIDTH)
}

/** The lines as one text. */
export function joinPage(...lines: readonly string[]): string {
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}

/** A paragraph, wrapped into lines. */
export function wrapText(text: string, maxWidth = getWidth()): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > maxWidth) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}

// A longer name is on its own line.
const MAX_NAME_WIDTH = 34

/** Rows with the names on the left and the texts on the right. */
export function alignColumns(rows: readonly (readonly [name: string, text: string])[]): string[] {
  const names = rows.map(([name]) => name.length).filter((length) => length <= MAX_NAME_WIDTH)
  const left = Math.max(0, ...names)
  const right = Math.max(20, getWidth() - INDENT.length - left - 2)
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = wrapText(text, right)
    const margin = INDENT + ' '.repeat(left + 2)
    if (name.length > left) return [INDENT + name, ...[first, ...more].filter(Boolean).map((line) => margin + line)]
    return [`${INDENT}${name.padEnd(left)}  ${first}`, ...more.map((line) => margin + line)]
  })
}
