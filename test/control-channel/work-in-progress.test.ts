// Work in progress: a shutdown waits for all of it, and for nothing if there is none.
import { expect, it } from 'vitest'
import { WorkInProgress } from '../../server/control-channel/work-in-progress.ts'

it('the wait ends when all work is over, also if some fails', async () => {
  const inProgress = new WorkInProgress()
  const steps: string[] = []
  let finish = (_result: string) => {}
  const first = inProgress.track(new Promise<string>((resolve) => (finish = resolve)))
  const second = inProgress.track(Promise.reject(new Error('broken')))
  const settled = inProgress.settle().then(() => steps.push('settled'))
  await expect(second).rejects.toThrow('broken')
  steps.push('second')
  finish('done')
  await settled
  expect(await first).toBe('done')
  expect(steps).toEqual(['second', 'settled'])
})

it('the wait ends at once if nothing is in progress', async () => {
  const inProgress = new WorkInProgress()
  await inProgress.settle()
  await inProgress.track(Promise.resolve())
  await inProgress.settle()
})
