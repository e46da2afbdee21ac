// A log that keeps its lines, for tests of what is told to the operator.
import type { Log } from '../../src/foundation/log.ts'

export interface RecordedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

export interface RecordingLog extends Log {
  readonly lines: RecordedLine[]
}

export function recordingLog(): RecordingLog {
  const lines: RecordedLine[] = []
  const recorder =
    (level: RecordedLine['level']): Log['info'] =>
    (fields, message) =>
      lines.push({ level, fields, message })
  return {
    level: 'debug',
    lines,
    debug: recorder('debug'),
    info: recorder('info'),
    warn: recorder('warn'),
    error: recorder('error'),
  }
}
