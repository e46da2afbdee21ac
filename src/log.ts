// What the controller needs of a log: pino's way of calling it.

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void

export interface Log {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** A log that says nothing, for tests and offline work. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
