// Pages of help as lines: as wide as the terminal, but no wider than is easy to read.

const MAX_WIDTH = 110
const INDENT = '  '

function width(): number {
  return Math.min(process.stdout.columns || MAX_WIDTH, MAX_WIDTH)
}

/** Lines as one text. */
export function joinPage(...lines: readonly string[]): string {
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}

/** A paragraph in lines. */
export function wrapText(text: string, most = width()): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > most) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}

// Names that are longer get a line of their own.
const MAX_NAME_WIDTH = 34

/** Names on the left, what they are on the right. */
export function alignColumns(rows: readonly (readonly [name: string, text: string])[]): string[] {
  const names = rows.map(([name]) => name.length).filter((length) => length <= MAX_NAME_WIDTH)
  const left = Math.max(0, ...names)
  const right = Math.max(20, width() - INDENT.length - left - 2)
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = wrapText(text, right)
    const margin = INDENT + ' '.repeat(left + 2)
    if (name.length > left) return [INDENT + name, ...[first, ...more].filter(Boolean).map((line) => margin + line)]
    return [`${INDENT}${name.padEnd(left)}  ${first}`, ...more.map((line) => margin + line)]
  })
}
