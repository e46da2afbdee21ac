// The dials that a router may have kept while it was not connected to the controller: of all its clients if it was connected to no other one.
import { describe, expect, it } from 'vitest'
import { findKeptDials } from '../../server/control-channel/absence.ts'
import { TestClock } from '../world/controller.ts'

const ABSENT_MS = 8_000
const READING_MS = 1_000

/** A router that comes back to the controller `one`. @param heldMs for how long the controller `two` has been in contact */
function comeBack(heldMs: number | undefined, { absentMs = ABSENT_MS, isAtTwo = true, isNewProcess = false } = {}) {
  const clock = new TestClock()
  const lostAt = clock.now()
  clock.advance(absentMs)
  const two = { name: 'two', isLive: true, details: heldMs === undefined ? {} : { heldMs } }
  const controller = {
    clock,
    cluster: { name: 'one', nodes: { list: () => [{ name: 'one', isLive: true, details: { heldMs: 0 } }, two] } },
    routers: {
      connected: { getDisconnectTime: () => lostAt },
      presence: { listNodesOf: () => (isAtTwo ? ['two'] : []) },
    },
  } as unknown as Parameters<typeof findKeptDials>[0]
  const dials = findKeptDials(controller, { routerId: 'router' } as Parameters<typeof findKeptDials>[1], isNewProcess)
  return dials && { place: dials.place, readForMs: dials.endAt - clock.monotonic() }
}

describe('the dials of a router that comes back', () => {
  it('were kept for this controller if it reached another one all the time', () => {
    expect(comeBack(ABSENT_MS)).toEqual({ place: 'kept for one controller', readForMs: READING_MS })
  })

  it('were kept for any if no controller was in contact with the log meanwhile, or the router is not known to have been at one', () => {
    const expected = { place: 'kept', readForMs: READING_MS }
    expect(comeBack(ABSENT_MS - 1)).toEqual(expected)
    expect(comeBack(undefined)).toEqual(expected)
    expect(comeBack(ABSENT_MS, { isAtTwo: false })).toEqual(expected)
  })

  it('are none that clients may have given up if it is back soon, or another process', () => {
    expect(comeBack(0, { absentMs: 3_999 })).toBeUndefined()
    expect(comeBack(0, { isNewProcess: true })).toBeUndefined()
  })
})
