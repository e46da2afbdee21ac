// The impact of a wide change is computed in turns, so that other requests are served meanwhile.
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { computeImpact } from '../../src/access/impact.ts'
import { newId } from '../../src/ids.ts'
import { type TestController, testController } from '../world/controller.ts'
import { smallNetwork } from './network.ts'

const IDENTITIES = 30

let world: TestController

beforeAll(async () => {
  world = await testController()
  const network = await smallNetwork(world)
  for (let at = 0; at < IDENTITIES; at++) await network.person(`person ${at}`, ['staff'])
  await network.service('web', ['inner'])
})
afterAll(() => world.close())

it('lets other requests run after a comparison that takes long, and finds every right nevertheless', async () => {
  const context = world.controller.contexts.create({ kind: 'system' })
  const after = {
    ...{ id: newId(), name: 'new', type: 'Dial', semantic: 'AnyOf' },
    ...{ identityRoles: ['#staff'], serviceRoles: ['#inner'], postureCheckRoles: [] },
  }
  // Each identity takes longer than a turn may.
  const { access } = world.controller
  const evaluatePosture = access.evaluatePosture.bind(access)
  vi.spyOn(access, 'evaluatePosture').mockImplementation((subject) => {
    world.clock.advance(20)
    return evaluatePosture(subject)
  })
  let turns = 0
  let isComputing = true
  const countTurn = () => {
    turns++
    if (isComputing) setImmediate(countTurn)
  }
  setImmediate(countTurn)

  const { gains } = await computeImpact(world.controller, context, [
    { resource: 'service-policies', id: after.id, after },
  ])
  isComputing = false

  expect(gains).toMatchObject({ identities: IDENTITIES, services: 1, pairs: IDENTITIES })
  expect(turns).toBeGreaterThan(IDENTITIES / 2)
})
