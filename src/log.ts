// The interface of the log: the part of pino's that the controller uses.

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void

export interface Log {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** A log that discards everything, for tests and offline work. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
