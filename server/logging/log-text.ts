// Writes log lines for people: in this process, because a thread would lose lines at an exit.
import type { DestinationStream } from 'pino'
import { prettyFactory } from 'pino-pretty'

// A client's input must not move the cursor, color what follows, or turn its direction. Stack traces have line breaks.
const CONTROL_CHARACTER = /[^\P{Cc}\n\t]|[\u2028-\u202e\u2066-\u2069]/gu

/** A destination for pino that passes its lines on as text. */
export function createLogText(output: DestinationStream, hasColors: boolean): DestinationStream {
  const prettify = prettyFactory({
    colorize: hasColors,
    ignore: 'pid,host',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  })
  return { write: (line) => output.write(prettify(JSON.parse(line, escapeControls))) }
}

function escapeControls(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(CONTROL_CHARACTER, toEscape) : value
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
