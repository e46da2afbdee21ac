// The memory of dials that wait for routers is bounded, and no router takes what is left for the others.
import { expect, it } from 'vitest'
import { type DialShare, DialsInProgress } from '../../server/control-channel/dials-in-progress.ts'

const KIB = 1024
const dialOf = (bytes: number) => ({ headers: new Map([[10, Buffer.alloc(bytes)]]), body: Buffer.alloc(0) })
const newShare = (): DialShare => ({ count: 0, bytes: 0 })

/** Begins dials until one is not handled. Returns what releases them, and the objection. */
function fill(dials: DialsInProgress, share: DialShare, bytes: number) {
  const releases: (() => void)[] = []
  for (;;) {
    const begun = dials.begin(share, dialOf(bytes))
    if (typeof begun === 'string') return { releases, objection: begun }
    releases.push(begun)
  }
}

it('all dials together hold at most 64 MiB, and one router at most half of it', () => {
  const dials = new DialsInProgress()
  const [one, other] = [newShare(), newShare()]
  const { objection, releases } = fill(dials, one, 16 * KIB)
  expect(objection).toBe('busy')
  expect(one.bytes).toBeLessThanOrEqual(32 * KIB * KIB)
  expect(releases.length).toBeGreaterThan(1_000)
  expect(fill(dials, other, 16 * KIB).releases.length).toBeGreaterThan(500)
  expect(one.bytes + other.bytes).toBeLessThanOrEqual(64 * KIB * KIB)
})

it('what a dial held is free once it is over', () => {
  const dials = new DialsInProgress()
  const share = newShare()
  const { releases } = fill(dials, share, 16 * KIB)
  for (const release of releases) release()
  expect(share).toEqual(newShare())
  expect(fill(dials, share, 16 * KIB).releases).toHaveLength(releases.length)
})

it('a dial that is longer than any may be is not handled', () => {
  expect(new DialsInProgress().begin(newShare(), dialOf(64 * KIB + 1))).toBe('too-long')
})

it('short dials of a router are bounded as well', () => {
  const { objection, releases } = fill(new DialsInProgress(), newShare(), 0)
  expect(['busy', 'too-many']).toContain(objection)
  expect(releases.length).toBeLessThanOrEqual(5_000)
})
