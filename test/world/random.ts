// Random values that a seed repeats: a test that fails says its seed, and fails again by it.

export interface Random {
  /** A number from 0 up to, and without, 1. */
  next(): number
  /** A whole number below `end`. */
  below(end: number): number
  /** True once in `times`. */
  oneIn(times: number): boolean
  pick<T>(values: readonly T[]): T
  /** Some of the values, in their order. */
  some<T>(values: readonly T[], most?: number): T[]
}

/** mulberry32: small, fast, and good enough to try things out. */
export function random(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  return {
    next,
    below,
    oneIn: (times) => below(times) === 0,
    pick: (values) => values[below(values.length)] as never,
    some: (values, most = values.length) => {
      const count = below(Math.min(most, values.length) + 1)
      const indexes = new Set<number>()
      while (indexes.size < count) indexes.add(below(values.length))
      return values.filter((_, at) => indexes.has(at))
    },
  }
}
