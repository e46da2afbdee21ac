// The time limit of synchronous work: it counts what the work used, not what others took meanwhile.
import { afterEach, expect, it, vi } from 'vitest'
import { runWithin, TimeLimitError } from '../../src/definitions/schema/time-limit.ts'

afterEach(() => void vi.restoreAllMocks())

/** Keeps the processor for a time. */
function spin(milliseconds: number): 'done' {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
  return 'done'
}

it('work that used all of its time is stopped', () => {
  const work = vi.fn(() => spin(60_000))
  expect(() => runWithin(20, work)).toThrow(TimeLimitError)
})

it('work runs once more if the processor was busy with others', () => {
  vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 1_000, system: 0 })
  const work = vi.fn(() => spin(200))
  expect(runWithin(100, work)).toBe('done')
  expect(work).toHaveBeenCalledTimes(2)
})

it('work that runs once more is stopped for good after four times as long', () => {
  vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 1_000, system: 0 })
  const work = vi.fn(() => spin(60_000))
  expect(() => runWithin(20, work)).toThrow(TimeLimitError)
  expect(work).toHaveBeenCalledTimes(2)
})

it('an error of the work is thrown to its caller', () => {
  const broken = new RangeError('broken')
  const work = () => {
    throw broken
  }
  expect(() => runWithin(20, work)).toThrow(broken)
})
