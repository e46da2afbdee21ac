// The line that a person at a terminal sees while nothing is printed; silent everywhere else.

const BAR_CHARACTERS = 30
const CLEAR_LINE = '\r\x1b[K'

export class Progress {
  readonly #stream: NodeJS.WriteStream

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** A bar that is full when all is done. */
  share(what: string, done: number, total: number): void {
    const full = Math.round((BAR_CHARACTERS * done) / total)
    const bar = '█'.repeat(full) + '░'.repeat(BAR_CHARACTERS - full)
    this.say(`${bar} ${what}: ${done.toLocaleString('en')} of ${total.toLocaleString('en')}`)
  }

  say(what: string): void {
    if (this.#stream.isTTY) this.#stream.write(CLEAR_LINE + what.slice(0, this.#stream.columns - 1))
  }

  clear(): void {
    if (this.#stream.isTTY) this.#stream.write(CLEAR_LINE)
  }
}
