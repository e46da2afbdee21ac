// A growing set of small non-negative integers, one bit each.

export class Bitset {
  #words: Uint32Array

  constructor(capacity = 64) {
    this.#words = new Uint32Array(Math.max(2, Math.ceil(capacity / 32)))
  }

  add(bit: number): void {
    const word = bit >>> 5
    if (word >= this.#words.length) this.#grow(word + 1)
    this.#words[word] = (this.#words[word] as number) | (1 << (bit & 31))
  }

  delete(bit: number): void {
    const word = bit >>> 5
    if (word < this.#words.length) this.#words[word] = (this.#words[word] as number) & ~(1 << (bit & 31))
  }

  has(bit: number): boolean {
    const word = bit >>> 5
    return word < this.#words.length && ((this.#words[word] as number) & (1 << (bit & 31))) !== 0
  }

  /** Adds every member of `other`. */
  addAll(other: Bitset): void {
    const theirs = other.#words
    if (theirs.length > this.#words.length) this.#grow(theirs.length)
    for (let at = 0; at < theirs.length; at++) {
      this.#words[at] = (this.#words[at] as number) | (theirs[at] as number)
    }
  }

  /** Removes every member that `other` does not have. */
  intersect(other: Bitset): void {
    const theirs = other.#words
    for (let at = 0; at < this.#words.length; at++) {
      this.#words[at] = at < theirs.length ? (this.#words[at] as number) & (theirs[at] as number) : 0
    }
  }

  /** Returns the members that `other` does not have. */
  without(other: Bitset): Bitset {
    const rest = new Bitset(this.#words.length * 32)
    for (let at = 0; at < this.#words.length; at++) {
      rest.#words[at] = (this.#words[at] as number) & ~(other.#words[at] ?? 0)
    }
    return rest
  }

  /** Whether the two have a member in common. */
  intersects(other: Bitset): boolean {
    const length = Math.min(this.#words.length, other.#words.length)
    for (let at = 0; at < length; at++) {
      if (((this.#words[at] as number) & (other.#words[at] as number)) !== 0) return true
    }
    return false
  }

  /** The number of members. */
  get size(): number {
    let size = 0
    for (let word of this.#words) for (; word !== 0; word &= word - 1) size += 1
    return size
  }

  get isEmpty(): boolean {
    return this.#words.every((word) => word === 0)
  }

  *[Symbol.iterator](): Generator<number> {
    for (let at = 0; at < this.#words.length; at++) {
      let word = this.#words[at] as number
      while (word !== 0) {
        const lowest = word & -word
        yield (at << 5) + (31 - Math.clz32(lowest))
        word ^= lowest
      }
    }
  }

  #grow(words: number): void {
    const grown = new Uint32Array(Math.max(words, this.#words.length * 2))
    grown.set(this.#words)
    this.#words = grown
  }
}
