// Log lines that repeat: the first is a line at once, the others are one line a minute with their number.
import { expect, it } from 'vitest'
import { AggregatedLog } from '../../src/foundation/aggregated-log.ts'
import { TestClock } from '../world/controller.ts'
import { recordingLog } from '../world/recording-log.ts'

function openLog() {
  const clock = new TestClock()
  const log = recordingLog()
  return { clock, log, aggregated: new AggregatedLog(clock, log) }
}

it('a line that repeats is one line at once, and one with a count when the minute is over', async () => {
  const { clock, log, aggregated } = openLog()
  for (const reason of ['a', 'b', 'c']) aggregated.warn('one', { reason }, 'refused')
  aggregated.warn('two', { reason: 'd' }, 'refused')
  await aggregated.flush()
  expect(log.lines.map(({ fields }) => fields)).toEqual([{ reason: 'a' }, { reason: 'd' }])
  clock.advance(60_000)
  await aggregated.flush()
  expect(log.lines.slice(2).map(({ fields }) => fields)).toEqual([{ reason: 'c', count: 2 }])
})

it('a thousand sources are five hundred lines and one for the others', () => {
  const { log, aggregated } = openLog()
  for (let source = 0; source < 1_000; source += 1) aggregated.warn(String(source), {}, 'refused')
  expect(log.lines).toHaveLength(501)
})

it('what was counted is logged at the end, though its minute is not over', async () => {
  const { log, aggregated } = openLog()
  for (let count = 0; count < 3; count += 1) aggregated.warn('one', {}, 'refused')
  await aggregated.flush({ isFinal: true })
  expect(log.lines.at(-1)!.fields).toEqual({ count: 2 })
})
