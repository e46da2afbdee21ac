// Routers of release 2 that are away while the root of the controller is replaced: whom they trust when they return.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { initializeDirectory } from '../../src/initialize.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { ADMIN, TestClock, type TestController, testController } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import type { ModelReplica } from '../world/router/model-replica.ts'

const YEAR = 365 * 24 * 60 * 60_000
const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]

let world: TestController
const folders: string[] = []

afterEach(async () => {
  await world.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

async function start(options: Parameters<typeof testController>[0] = {}): Promise<void> {
  world = await testController({ ...options, settings: { listeners: LISTENERS } })
  await world.controller.membership.announce(world.system, {})
}

/** Connects a router, and has it follow the model from what it has. It trusts the roots of `rootPem`. */
async function follow(
  address: { url: string; rootPem: string },
  enrolled: EnrolledRouter,
  replica?: ModelReplica,
): Promise<FollowingRouter> {
  const router = await FollowingRouter.connect(address, enrolled, replica)
  router.subscribe()
  await router.reach(world.controller.routers.model.index)
  await router.wire.takeReply(router.wire.send(1))
  return router
}

const rootId = () => computeFingerprint(world.controller.authority.root)

describe('a router that was away', () => {
  it('while the replacement of the root began returns by what it knows, and trusts clients of either root', async () => {
    await start()
    const [address, formerId] = [await world.listen(), rootId()]
    const enrolled = await enrolledRouter(world, { name: newName('router') })
    const router = await follow(address, enrolled)
    await router.wire.close()
    await world.controller.certificates.own.rotateRoot(world.system)

    const back = await follow(address, enrolled, router.replica)

    expect(rootId()).not.toBe(formerId)
    for (const id of [formerId, rootId()]) expect(back.replica.has('publicKey', id)).toBe(true)
    await back.wire.close()
  })

  it('during all of it returns by its certificate of the former root, which clients lead to for as long as it lasts', async () => {
    await start()
    const [address, formerId] = [await world.listen(), rootId()]
    const enrolled = await enrolledRouter(world, { name: newName('router') })
    const router = await follow(address, enrolled)
    await router.wire.close()
    const { authority, certificates } = world.controller
    await certificates.own.rotateRoot(world.system)
    await certificates.own.finishRootRotation(world.system, true)

    const back = await follow({ ...address, rootPem: authority.bundlePem }, enrolled, router.replica)

    expect(back.states).toBe(0)
    for (const id of [formerId, rootId()]) expect(back.replica.has('publicKey', id)).toBe(true)
    await back.wire.close()
  })

  it('when a former root had expired and was dropped does not trust it any more', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'controller-roots-'))
    folders.push(folder)
    const directory = join(folder, 'data')
    // Roots last for thirty years.
    const clock = new TestClock(Math.floor(Date.now() / 1000) * 1000 - 31 * YEAR)
    await initializeDirectory({ directory, settings: {}, clock, administrator: ADMIN })
    await start({ directory, clock })
    const { own } = world.controller.certificates
    const formerId = rootId()
    clock.advance(20 * YEAR)
    await own.rotateRoot(world.system)
    await own.finishRootRotation(world.system, true)
    clock.advance(11 * YEAR)
    await own.renewServer(world.system)
    const address = await world.listen()
    const enrolled = await enrolledRouter(world, { name: newName('router') })
    const router = await follow(address, enrolled)
    expect(router.replica.has('publicKey', formerId)).toBe(true)
    await router.wire.close()
    await own.rotateIntermediate(world.system)

    const back = await follow(address, enrolled, router.replica)

    expect(back.states).toBe(0)
    expect(back.replica.has('publicKey', formerId)).toBe(false)
    expect(back.replica.has('publicKey', rootId())).toBe(true)
    await back.wire.close()
  })
})
