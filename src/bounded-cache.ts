// A map that forgets what was not used for longest, so that its entries stay below a number of bytes in all.

interface Entry<V> {
  readonly value: V
  readonly bytes: number
}

export class BoundedCache<V> {
  readonly #maxBytes: number
  /** In order of use, the oldest first. */
  readonly #entries = new Map<string, Entry<V>>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** About how much memory the entries take. */
  get bytes(): number {
    return this.#bytes
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** @param bytes how much the value takes; an entry that would take more than there is room for is not kept */
  set(key: string, value: V, bytes: number): void {
    this.delete(key)
    const entry = { value, bytes: bytes + estimateTextBytes(key) }
    if (entry.bytes > this.#maxBytes) return
    this.#entries.set(key, entry)
    this.#bytes += entry.bytes
    while (this.#bytes > this.#maxBytes) this.delete(this.#entries.keys().next().value ?? '')
  }

  /** @returns whether there was such an entry */
  delete(key: string): boolean {
    const entry = this.#entries.get(key)
    if (!entry) return false
    this.#bytes -= entry.bytes
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#bytes = 0
  }
}

/** The most that a text takes in memory. */
export function estimateTextBytes(text: string): number {
  return 2 * text.length
}
