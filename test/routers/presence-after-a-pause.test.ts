// A controller whose process stood still for so long that the others have removed what it said, which it does not know.
import { afterEach, expect, it } from 'vitest'
import { SharedPresence } from '../../src/network/routers/shared-presence.ts'
import type { Commit, RouterPresence } from '../../src/storage/transactions/changes.ts'
import { TestClock } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let presence: SharedPresence | undefined
afterEach(() => presence?.close())

const NOTHING: RouterPresence = { isFull: true, routers: {}, identities: {} }

it('is asked again what is connected to it, until it has said so', async () => {
  const clock = new TestClock()
  let [questions, reports] = [0, 0]
  const record = ({ after }: { after?: RouterPresence }) => {
    if (after) reports += 1
    else questions += 1
  }
  const write = async (body: (tx: unknown) => Promise<void>) => body({ record })
  const parts = {
    ...{ clock, connected: world.controller.routers.connected, node: 'one', log: world.controller.log },
    ...{ listLiveNodes: () => ['one', 'two'], createSystemContext: () => ({ write }) },
  }
  presence = new SharedPresence(parts as unknown as ConstructorParameters<typeof SharedPresence>[0])
  await presence.start()
  for (const count of [2, 3]) {
    clock.advance(10_000)
    await expect.poll(() => questions).toBe(count)
  }
  expect(presence.isComplete).toBe(false)

  const change = { resource: 'presence', operation: 'update', id: 'two', after: NOTHING }
  presence.apply({ at: clock.now(), changes: [change] } as unknown as Commit)
  expect(presence.isComplete).toBe(true)
  const before = reports
  clock.advance(10_000)
  presence.identityChanged('someone')
  await expect.poll(() => reports).toBeGreaterThan(before)
  expect(questions).toBe(3)
})
