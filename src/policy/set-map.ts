// Sets by key; a key whose set is empty takes no memory.

export class SetMap<T = string> {
  readonly #sets = new Map<string, Set<T>>()

  add(key: string, value: T): void {
    const set = this.#sets.get(key)
    if (set) set.add(value)
    else this.#sets.set(key, new Set([value]))
  }

  delete(key: string, value: T): void {
    const set = this.#sets.get(key)
    if (!set?.delete(value)) return
    if (set.size === 0) this.#sets.delete(key)
  }

  /** Deletes all values of a key. */
  clear(key: string): void {
    this.#sets.delete(key)
  }

  /** The keys, each with its set. */
  [Symbol.iterator](): Iterator<[string, ReadonlySet<T>]> {
    return this.#sets.entries()
  }

  get(key: string): ReadonlySet<T> {
    return this.#sets.get(key) ?? NONE
  }
}

const NONE: ReadonlySet<never> = new Set()
