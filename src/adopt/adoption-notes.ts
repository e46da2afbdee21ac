// Collects what an adoption could not take over as it was, for the report that an operator reads before the switch.

/** Something that is different afterwards. */
export interface AdoptionNote {
  /** The kind of record, as the former controller calls it; or the part of its configuration. */
  readonly kind: string
  readonly id: string
  readonly name: string
  /** The problem, and what follows from it. */
  readonly problem: string
}

// A report is read by people.
const MAX_LISTED = 1_000

export class AdoptionNotes {
  readonly #listed: AdoptionNote[] = []
  #count = 0

  add(kind: string, id: string, name: string, problem: string): void {
    this.#count += 1
    if (this.#listed.length < MAX_LISTED) this.#listed.push({ kind, id, name, problem })
  }

  get listed(): readonly AdoptionNote[] {
    return this.#listed
  }

  /** How many there are, those that are not listed included. */
  get count(): number {
    return this.#count
  }
}
