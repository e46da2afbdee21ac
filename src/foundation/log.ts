// The interface of the log: the part of pino's that the controller uses, and its levels.

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void

/** From the most to the least. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

export interface Log {
  /** The lowest level that is written; undefined if it cannot be changed. */
  level?: string
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** A log that discards everything, for tests and offline work. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
