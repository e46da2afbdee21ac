// The defects that a check of the data reports, and how each can be repaired.

/** A defect of the data. */
export interface Defect {
  /** One sentence. */
  readonly description: string
  /** How the controller can repair it without losing anything; absent if only a person, or a backup, can. */
  readonly repair?: Repair
}

export type Repair =
  /** An index does not match its table. */
  | { readonly kind: 'rebuild-index'; readonly index: string }
  /** The table of a set does not hold the members that a record has. */
  | { readonly kind: 'rewrite-members'; readonly resource: string; readonly field: string; readonly n: number }
  /** A set of a record contains ids, or roles, of records that do not exist. */
  | {
      readonly kind: 'remove-members'
      readonly resource: string
      readonly id: string
      readonly field: string
      readonly members: readonly string[]
    }
  /** A field names a record that does not exist, and may be empty. */
  | { readonly kind: 'clear-reference'; readonly resource: string; readonly id: string; readonly field: string }
  /** A record belongs to a record that does not exist. */
  | { readonly kind: 'delete-record'; readonly resource: string; readonly id: string }
  /** The inventory of certificates does not match a record. */
  | { readonly kind: 'renew-inventory'; readonly resource: string; readonly id: string }
  /** State in memory differs from the rows. */
  | { readonly kind: 'rebuild-projection'; readonly projection: string }

/** The paths of the files that a check reads. */
export interface CheckedFiles {
  readonly database: string
  readonly auditKey: string
}

/** Yields what `check` yields. If it cannot be completed, because the file is damaged, that is a defect, too. */
export function* withoutFailure(subject: string, check: () => Iterable<Defect>): Generator<Defect> {
  try {
    yield* check()
  } catch (error) {
    yield { description: `${subject} cannot be checked: ${(error as Error).message}` }
  }
}
