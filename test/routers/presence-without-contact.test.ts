// The log of a controller that cannot tell the others which routers are connected to it.
import { afterEach, expect, it } from 'vitest'
import { SharedPresence } from '../../src/network/routers/shared-presence.ts'
import { TestClock } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let presence: SharedPresence | undefined
afterEach(() => presence?.close())

it('warns once, and again after it could tell them meanwhile', async () => {
  const levels: string[] = []
  let [hasContact, attempts] = [true, 0]
  const write = async () => {
    attempts += 1
    if (!hasContact) throw new Error('connection refused')
  }
  const note = (level: string) => () => void levels.push(level)
  const parts = {
    ...{ clock: new TestClock(), connected: world.controller.routers.connected, node: 'one' },
    ...{ listLiveNodes: () => ['one'], createSystemContext: () => ({ write }) },
    log: { warn: note('warn'), debug: note('debug') },
  }
  presence = new SharedPresence(parts as unknown as ConstructorParameters<typeof SharedPresence>[0])
  const attempt = async (count: number) => {
    const until = attempts + count
    presence?.identityChanged('someone')
    await expect.poll(() => attempts).toBeGreaterThanOrEqual(until)
  }
  await presence.start()

  hasContact = false
  await attempt(3)
  expect(levels.slice(0, 2)).toEqual(['warn', 'debug'])
  hasContact = true
  await attempt(1)
  hasContact = false
  await attempt(3)
  expect(levels.filter((level) => level === 'warn')).toHaveLength(2)
})
