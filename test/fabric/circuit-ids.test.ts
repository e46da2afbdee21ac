// Ids of circuits say which process made them, and how long the circuit may be idle.
import { describe, expect, it } from 'vitest'
import { CircuitIds, newEndAddress } from '../../src/network/circuits/circuit-ids.ts'

const STARTED_AT = Date.UTC(2026, 10, 22)

const KEY = Buffer.alloc(32, 7)
const PATH = ['router-1', 'router-2', 'router-3']

describe('the id of a circuit', () => {
  const earlier = new CircuitIds(KEY, STARTED_AT)
  const later = new CircuitIds(KEY, STARTED_AT + 5_000)

  it('is not one of an earlier process to the process that made it, and is to any other', () => {
    const id = earlier.create(PATH, 0)
    expect(earlier.parseEarlier(id)).toBeUndefined()
    expect(later.parseEarlier(id)).toMatchObject({ maxIdleMs: undefined })
  })

  it('carries the longest time without data, in whole seconds', () => {
    expect(later.parseEarlier(earlier.create(PATH, 90_000))).toMatchObject({ maxIdleMs: 90_000 })
    expect(later.parseEarlier(earlier.create(PATH, 1))).toMatchObject({ maxIdleMs: 1_000 })
  })

  it('tells the routers of its path from others, which cannot be made to look like one of them', () => {
    const [one, other] = [earlier.create(PATH, 0), earlier.create(['router-4'], 90_000)]
    const isOnPath = (id: string, routerId: string) => later.parseEarlier(id)?.isOnPath(routerId)
    for (const routerId of PATH) expect(isOnPath(one, routerId)).toBe(true)
    for (const routerId of ['router-4', 'router', '', 'router-1router-2']) expect(isOnPath(one, routerId)).toBe(false)
    expect([isOnPath(other, 'router-4'), isOnPath(other, 'router-1')]).toEqual([true, false])
    const moved = one
      .split('.')
      .with(1, other.split('.')[1] as string)
      .join('.')
    for (const routerId of PATH) expect(isOnPath(moved, routerId)).toBe(false)
    const ofOtherKey = new CircuitIds(Buffer.alloc(32, 8), STARTED_AT + 5_000).parseEarlier(one)
    expect(ofOtherKey?.isOnPath('router-1')).toBe(false)
  })

  it.each(['', 'nonsense', '5ztyVkR5MFTzd1JVuTv8k2', `${'x'.repeat(10_000)}.y`])('is not "%.30s"', (text) => {
    expect(later.parseEarlier(text)).toBeUndefined()
  })

  it('and the addresses of its ends are never the same, and have no blanks', () => {
    const texts = Array.from({ length: 1_000 }, () => [earlier.create(PATH, 0), newEndAddress()]).flat()
    expect(new Set(texts).size).toBe(2_000)
    expect(texts.every((text) => /^[\w.-]+$/.test(text))).toBe(true)
  })
})
