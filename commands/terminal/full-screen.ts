// A screen of its own on the terminal: drawn over and over, with keys, and restored however the process ends.
import { exitBySignal } from '../foundation/interrupts.ts'

const ESC = '\u001b'
const ENTER = `${ESC}[?1049h${ESC}[?25l`
const LEAVE = `${ESC}[?25h${ESC}[?1049l`
const HOME = `${ESC}[H`
const CLEAR_LINE = `${ESC}[K`
const CLEAR_BELOW = `${ESC}[J`

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

export class FullScreen {
  readonly #onInput: (text: string) => void
  readonly #onResize: () => void
  readonly #leave = () => this.close()
  #isOpen = false

  constructor(onKey: (key: string) => void, onResize: () => void) {
    // Keys that are typed fast come together; a key that is written as several characters begins with the first of them.
    this.#onInput = (text) => {
      for (const key of text.startsWith(ESC) ? [text] : text) onKey(key)
    }
    this.#onResize = onResize
  }

  get size(): ScreenSize {
    const { columns = 80, rows = 24 } = process.stdout
    return { columns, rows }
  }

  open(): void {
    this.#isOpen = true
    // An uncaught error ends the process by `exit`, too, as signals do.
    process.on('exit', this.#leave)
    for (const signal of SIGNALS) process.on(signal, exitBySignal)
    process.stdout.on('resize', this.#onResize)
    if (process.stdin.isTTY) {
      process.stdin.setRawMode(true)
      process.stdin.setEncoding('utf8').on('data', this.#onInput).resume()
    }
    process.stdout.write(ENTER)
  }

  /** Draws lines, each of which is as wide as the screen at most. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return
    const text = lines.slice(0, this.size.rows).map((line) => line + CLEAR_LINE)
    process.stdout.write(HOME + text.join('\r\n') + CLEAR_BELOW)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    process.off('exit', this.#leave)
    for (const signal of SIGNALS) process.off(signal, exitBySignal)
    process.stdout.off('resize', this.#onResize)
    if (process.stdin.isTTY) {
      process.stdin.setRawMode(false)
      process.stdin.off('data', this.#onInput).pause()
    }
    process.stdout.write(LEAVE)
  }
}
