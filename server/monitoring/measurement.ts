// A measurement of this process, with its values at a moment.

/** A value, with the labels that tell it from the other values of its measurement. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

export interface Measurement {
  /** Without the prefix of all metrics. The name of a counter ends with `_total`. */
  readonly name: string
  readonly kind: 'gauge' | 'counter'
  readonly help: string
  readonly labels?: readonly string[]
  read(): readonly Sample[] | Promise<readonly Sample[]>
}
