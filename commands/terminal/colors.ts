// Colors for people: of failures, and of the marks that lines begin with.

/** Whether a stream of this process shows colors: a terminal, unless NO_COLOR is set. */
export function hasColors({ isTTY }: Pick<NodeJS.WriteStream, 'isTTY'>, env: NodeJS.ProcessEnv = process.env): boolean {
  return isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
}

const CODES = { red: 31, green: 32, yellow: 33 } as const

export type Color = keyof typeof CODES

export function colorText(text: string, color: Color): string {
  return `\u001b[${CODES[color]}m${text}\u001b[39m`
}

const MARK_COLORS: Readonly<Record<string, Color>> = {
  '✓': 'green',
  '✗': 'red',
  '?': 'yellow',
  '+': 'green',
  '-': 'red',
  '~': 'yellow',
}

// The outcome of a check, and what a plan does to a record.
const MARK = /^( *)([✓✗?](?= )|[+~-](?= (?:create|change|delete) ))/gm

/** The text with colored marks. */
export function colorMarks(text: string): string {
  return text.replace(
    MARK,
    (_, indent: string, mark: string) => indent + colorText(mark, MARK_COLORS[mark] ?? 'yellow'),
  )
}
