// Writes failures to stderr: as text for people, as one JSON object for programs.
import { colorText, hasColors } from '../terminal/colors.ts'
import { escapeJson, escapeLines } from '../terminal/text.ts'

/** The command that failed. */
export interface FailedAttempt {
  /** The command, as it is typed: `identity list`. */
  readonly command: string
  readonly argv: readonly string[]
  /** Names of its flags, to suggest one for an unknown flag. */
  readonly flags: readonly string[]
  /** Whether there is a command with this id. */
  isCommand(id: string): boolean
}

/** A failure, with the members of its JSON. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly field?: string
  readonly hint?: string
  readonly requestId?: string
}

/** @param argv selects JSON if its output format is one for programs */
export function writeFailure(failure: Failure, argv: readonly string[]): void {
  process.stderr.write(wantsJson(argv) ? `${escapeJson(JSON.stringify(failure))}\n` : toFailureText(failure))
}

function toFailureText({ message, hint, requestId }: Failure): string {
  const text = escapeLines(message)
  const lines = [hasColors(process.stderr) ? colorText(text, 'red') : text]
  if (hint) lines.push(escapeLines(`Try: ${hint}`))
  if (requestId) lines.push(escapeLines(`Request: ${requestId}`))
  return `${lines.join('\n')}\n`
}

/** Whether the output format is one for programs. JSON is also valid YAML. */
function wantsJson(argv: readonly string[]): boolean {
  return argv.some((word, at) => {
    const typed = word === '-o' || word === '--output' ? argv[at + 1] : /^(?:-o=?|--output=)(\w+)$/.exec(word)?.[1]
    // Choices can be typed in any case.
    const value = typed?.toLowerCase()
    return value === 'json' || value === 'jsonl' || value === 'yaml'
  })
}
