// The sections of a network file, as requests and responses carry them.

/** Some records of a resource, by the members that administrators set, references by name. */
export interface NetworkSection {
  /** The plural name of the resource. */
  readonly resource: string
  readonly records: readonly Readonly<Record<string, unknown>>[]
}
