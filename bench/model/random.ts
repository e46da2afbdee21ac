// Numbers that look random and are the same in every run.

/** mulberry32: a generator of numbers from 0 to below 1. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The items in an order that is the same in every run. */
export function shuffled<T>(items: readonly T[]): T[] {
  const random = seeded(1)
  const order = [...items]
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    ;[order[at], order[other]] = [order[other] as T, order[at] as T]
  }
  return order
}
