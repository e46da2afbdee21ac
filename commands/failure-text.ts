// How a failure is written to stderr: sentences for people, one JSON object for programs.
import { escapeJson, escapeLines } from './output/text.ts'

/** The command that failed. */
export interface Attempt {
  /** As people type it, `identity list`. */
  readonly command: string
  readonly argv: readonly string[]
  /** Its flags, for the nearest of one that it has not. */
  readonly flags: readonly string[]
}

/** A failure as JSON shows it. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly field?: string
  readonly hint?: string
  readonly requestId?: string
}

/** @param argv decides the form */
export function writeFailure(failure: Failure, argv: readonly string[]): void {
  process.stderr.write(wantsJson(argv) ? `${escapeJson(JSON.stringify(failure))}\n` : text(failure))
}

function text({ message, hint, requestId }: Failure): string {
  const lines = [message]
  if (hint) lines.push(`Try: ${hint}`)
  if (requestId) lines.push(`Request: ${requestId}`)
  return `${escapeLines(lines.join('\n'))}\n`
}

/** Whether the result was asked for in a form that programs read; JSON is YAML, too. */
function wantsJson(argv: readonly string[]): boolean {
  return argv.some((word, at) => {
    const value = word === '-o' || word === '--output' ? argv[at + 1] : /^(?:-o=?|--output=)(\w+)$/.exec(word)?.[1]
    return value === 'json' || value === 'jsonl' || value === 'yaml'
  })
}
