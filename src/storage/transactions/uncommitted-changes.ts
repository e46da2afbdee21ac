// The changes that a transaction sees besides memory and committed rows: no projection has followed them yet.
//
// A transaction finds them as `tx.uncommitted`: the changes of earlier transactions of its group, and its own. Guards
// judge by them, and changes are tried out on the policy index at most twice for a transaction.
import type { Change, StateOf } from './changes.ts'

export class UncommittedChanges {
  /** The changes of the transactions before this one that commit together with it. */
  readonly earlier: readonly Change[]
  readonly #own: Change[] = []

  constructor(earlier: readonly Change[]) {
    this.earlier = earlier
  }

  /** The changes of the transaction itself, so far. */
  get own(): readonly Change[] {
    return this.#own
  }

  get all(): readonly Change[] {
    return [...this.earlier, ...this.#own]
  }

  add(change: Change): void {
    this.#own.push(change)
  }

  /** The record after its last change; undefined if none concerns it, or it is deleted. */
  findNewest<Name extends Change['resource']>(resource: Name, id: string): StateOf<Name> {
    const isOfRecord = (change: Change) => change.resource === resource && change.id === id
    const newest = this.#own.findLast(isOfRecord) ?? this.earlier.findLast(isOfRecord)
    return newest?.after as StateOf<Name>
  }
}
