// How the control channel notices that its process was stopped.
import { expect, it } from 'vitest'
import { Pauses } from '../../server/control-channel/pauses.ts'

it('takes requests for old after a pause of more than five seconds, until those that waited are read', () => {
  let now = 0
  const pauses = new Pauses(() => now)
  now += 5_000
  expect(pauses.areRequestsOld).toBe(false)
  now += 1
  expect(pauses.areRequestsOld).toBe(true)
  pauses.tick()
  expect(pauses.areRequestsOld).toBe(true)
  now += 1_000
  expect(pauses.areRequestsOld).toBe(false)
  now += 4_000
  pauses.tick()
  expect(pauses.areRequestsOld).toBe(false)
})
