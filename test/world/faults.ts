// Server faults, which no test may leave unnoticed: these are error log lines and 5xx responses of controllers in this process and in
// others, and responses that contradict the documents.
import type { Log } from '../../src/foundation/log.ts'

const LEVEL_OF_ERRORS = 50

const faults: string[] = []
const contradictions: string[] = []
let expected: { readonly pattern: RegExp; isMet: boolean }[] = []
let allowed: RegExp[] = []
/** The faults that tests of the file have stated: the log counts repeated ones, and writes their number up to a minute later. */
const stated: RegExp[] = []

/** States which faults the running test provokes. Each pattern must match at least one, and each fault a pattern. */
export function expectFaults(...patterns: readonly RegExp[]): void {
  expected.push(...patterns.map((pattern) => ({ pattern, isMet: false })))
  stated.push(...patterns)
}

/** States which faults the running test may provoke, if it depends on timing whether it does. */
export function allowFaults(...patterns: readonly RegExp[]): void {
  allowed.push(...patterns)
  stated.push(...patterns)
}

/** Adds a fault to those that the running test has to account for. */
export function recordFault(fault: string): void {
  faults.push(fault)
}

/** Adds a contradiction between a response and the documents, which no test may provoke. */
export function recordContradiction(contradiction: string): void {
  contradictions.push(contradiction)
}

/** Returns the contradictions since the last call. */
export function takeContradictions(): string[] {
  return contradictions.splice(0)
}

/** Returns the faults that no test stated, and the patterns that matched none, both since the last call. */
export function takeUnexpectedFaults(): { readonly unexpected: string[]; readonly missing: string[] } {
  const unexpected = faults.splice(0).filter((fault) => {
    const matching = expected.filter(({ pattern }) => pattern.test(fault))
    for (const each of matching) each.isMet = true
    const isStated = / count=\d+$/.test(fault) && stated.some((pattern) => pattern.test(fault))
    return matching.length === 0 && !isStated && !allowed.some((pattern) => pattern.test(fault))
  })
  const missing = expected.filter(({ isMet }) => !isMet).map(({ pattern }) => String(pattern))
  expected = []
  allowed = []
  return { unexpected, missing }
}

/** Ends what the tests of a file stated: the next file of the process states its own. */
export function dropStatements(): void {
  stated.splice(0)
}

/** Returns a log that passes every line on to another one and records each error as a fault. */
export function recordErrors(log: Log): Log {
  return {
    get level() {
      return log.level as string
    },
    set level(level: string) {
      log.level = level
    },
    debug: log.debug,
    info: log.info,
    warn: log.warn,
    error(fields, message) {
      recordFault(`logged: ${message} ${render(fields)}`)
      log.error(fields, message)
    },
  }
}

/** Records the errors among the log lines of a controller in a process of its own. Takes text in pieces of any size. */
export function recordErrorLines(): (piece: string) => void {
  let rest = ''
  return (piece) => {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.startsWith('{"level":')) continue
      const { level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
      if (Number(level) >= LEVEL_OF_ERRORS) recordFault(`logged: ${msg} ${render(fields)}`)
    }
  }
}

function render(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value instanceof Error ? value.stack : JSON.stringify(value)}`)
    .join(' ')
}
