// Prints a run: coloured on a terminal, plain text everywhere else.
import { styleText } from 'node:util'
import { headLines, resultLine } from './columns.ts'
import { isMet, type Result, type Section } from './results.ts'

type Style = Parameters<typeof styleText>[0]

export class Printer {
  readonly #stream: NodeJS.WriteStream
  #section: Section | undefined

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  line(text: string): void {
    this.#stream.write(`${text}\n`)
  }

  /** Prints a result, below the head of its section. */
  result(result: Result): void {
    if (result.section !== this.#section) {
      this.#section = result.section
      for (const line of headLines(result.section)) this.line(this.#styled('bold', line))
    }
    this.line(this.#styled(styleOf(result), resultLine(result)))
  }

  #styled(style: Style | undefined, text: string): string {
    const hasColours = this.#stream.isTTY && !process.env.NO_COLOR
    return style && hasColours ? styleText(style, text) : text
  }
}

function styleOf(result: Result): Style | undefined {
  if (result.kind === 'failed') return 'red'
  if (result.kind === 'not-built-yet') return 'gray'
  const met = isMet(result)
  if (met === undefined) return undefined
  return met ? 'green' : 'red'
}
