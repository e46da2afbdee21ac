// Pages of help as lines: as wide as the terminal, but no wider than is easy to read.

const MOST = 110
const INDENT = '  '

function width(): number {
  return Math.min(process.stdout.columns || MOST, MOST)
}

/** Lines as one text. */
export function page(...lines: readonly string[]): string {
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}

/** A paragraph in lines. */
export function wrapped(text: string, most = width()): string[] {
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
const LONGEST_NAME = 34

/** Names on the left, what they are on the right. */
export function columns(rows: readonly (readonly [name: string, text: string])[]): string[] {
  const names = rows.map(([name]) => name.length).filter((length) => length <= LONGEST_NAME)
  const left = Math.max(0, ...names)
  const right = Math.max(20, width() - INDENT.length - left - 2)
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = wrapped(text, right)
    const margin = INDENT + ' '.repeat(left + 2)
    if (name.length > left) return [INDENT + name, ...[first, ...more].filter(Boolean).map((line) => margin + line)]
    return [`${INDENT}${name.padEnd(left)}  ${first}`, ...more.map((line) => margin + line)]
  })
}
