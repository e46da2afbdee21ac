// Sets of strings by key; a key whose set is empty takes no memory.

export class SetMap {
  readonly #sets = new Map<string, Set<string>>()

  add(key: string, value: string): void {
    const set = this.#sets.get(key)
    if (set) set.add(value)
    else this.#sets.set(key, new Set([value]))
  }

  delete(key: string, value: string): void {
    const set = this.#sets.get(key)
    if (!set?.delete(value)) return
    if (set.size === 0) this.#sets.delete(key)
  }

  get(key: string): ReadonlySet<string> {
    return this.#sets.get(key) ?? NONE
  }
}

const NONE: ReadonlySet<string> = new Set()
