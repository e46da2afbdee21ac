// Ids of circuits say which process made them, and how long the circuit may be idle.
import { describe, expect, it } from 'vitest'
import { CircuitIds, newEndAddress } from '../../src/network/circuits/circuit-ids.ts'

const STARTED_AT = Date.UTC(2026, 10, 22)

describe('the id of a circuit', () => {
  const earlier = new CircuitIds(STARTED_AT)
  const later = new CircuitIds(STARTED_AT + 5_000)

  it('is not one of an earlier process to the process that made it, and is to any other', () => {
    const id = earlier.create(0)
    expect(earlier.parseEarlier(id)).toBeUndefined()
    expect(later.parseEarlier(id)).toEqual({ maxIdleMs: undefined })
  })

  it('carries the longest time without data, in whole seconds', () => {
    expect(later.parseEarlier(earlier.create(90_000))).toEqual({ maxIdleMs: 90_000 })
    expect(later.parseEarlier(earlier.create(1))).toEqual({ maxIdleMs: 1_000 })
  })

  it.each(['', 'nonsense', '5ztyVkR5MFTzd1JVuTv8k2', `${'x'.repeat(10_000)}.y`])('is not "%.30s"', (text) => {
    expect(later.parseEarlier(text)).toBeUndefined()
  })

  it('and the addresses of its ends are never the same, and have no blanks', () => {
    const texts = Array.from({ length: 1_000 }, () => [earlier.create(0), newEndAddress()]).flat()
    expect(new Set(texts).size).toBe(2_000)
    expect(texts.every((text) => /^[\w.-]+$/.test(text))).toBe(true)
  })
})
