// Heartbeats of a channel: how it tells a router that is out of reach from a controller that is busy itself.
import { describe, expect, it } from 'vitest'
import { Heartbeats } from '../../server/control-channel/heartbeats.ts'
import { TestClock } from '../world/controller.ts'

function open() {
  const clock = new TestClock()
  const heartbeats = new Heartbeats(clock)
  /** Lets time pass as in a controller that does not stall. */
  const passSeconds = (count: number, isExcused = false) => {
    for (let second = 1; second <= count; second += 1) {
      clock.advance(1_000)
      heartbeats.tick(isExcused)
      if (heartbeats.isDue) heartbeats.send()
    }
  }
  return { clock, heartbeats, passSeconds }
}

describe('a router', () => {
  it('is silent three seconds after a heartbeat that has had no response, until it responds', () => {
    const { heartbeats, passSeconds } = open()
    heartbeats.send()
    passSeconds(3)
    expect(heartbeats.isSilent).toBe(false)
    passSeconds(1)
    expect(heartbeats.isSilent).toBe(true)
    expect(heartbeats.areRequestsOld).toBe(true)
    heartbeats.takeResponse()
    expect(heartbeats.isSilent).toBe(false)
  })

  it('may have sent requests long ago for a second after a late response, and not after one in time', () => {
    const { clock, heartbeats, passSeconds } = open()
    heartbeats.send()
    passSeconds(4)
    heartbeats.takeResponse()
    clock.advance(999)
    expect(heartbeats.areRequestsOld).toBe(true)
    clock.advance(1)
    expect(heartbeats.areRequestsOld).toBe(false)
    heartbeats.send()
    passSeconds(2)
    heartbeats.takeResponse()
    expect(heartbeats.areRequestsOld).toBe(false)
  })

  it('is not silent while the controller is busy, or waits for something else', () => {
    const { clock, heartbeats, passSeconds } = open()
    heartbeats.send()
    for (let turn = 1; turn <= 5; turn += 1) {
      clock.advance(3_000)
      heartbeats.tick(false)
      expect(heartbeats.isSilent).toBe(false)
    }
    passSeconds(10, true)
    expect(heartbeats.isSilent).toBe(false)
  })
})

describe('a heartbeat', () => {
  const MAX_UINT64 = 2n ** 64n - 1n
  const HEAD_START_MS = 1_000
  const encode = (timeNs: bigint) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(timeNs)
    return bytes
  }

  it.each([MAX_UINT64, 2n ** 63n - 1n, 0n])(
    'of any time has a response, that time and what has passed since: %d',
    (sentAtNs) => {
      const { clock, heartbeats } = open()
      heartbeats.take(encode(sentAtNs))
      expect(heartbeats.response?.readBigUInt64LE()).toBe(sentAtNs)
      clock.advance(1)
      heartbeats.setHeadStart(HEAD_START_MS)
      expect(heartbeats.response?.readBigUInt64LE()).toBe((sentAtNs + 1_001_000_000n) & MAX_UINT64)
    },
  )
})
