// The sources of what is measured of this process, as operations read them.

/** A value, with the labels that tell it from the other values of its metric. */
export interface MonitorSample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** The requests by operation and status, and how long all of them took together. */
export interface RequestFigures {
  readonly counts: readonly MonitorSample[]
  readonly seconds: number
}

export interface Monitor {
  /** How late the event loop is. */
  readonly load: { readonly delayMs: number }
  /** Undefined if no listener carries metrics: then requests are not counted. */
  readonly metrics: { readRequests(): Promise<RequestFigures> } | undefined
}
