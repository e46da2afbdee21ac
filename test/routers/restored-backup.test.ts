// The restore of a backup from before the first router of release 2 connected: tokens, and what that router holds of the model.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { restoreBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { CLIENT } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { type TestClient, TestNetwork } from '../world/router/network.ts'

let network: TestNetwork
let folder: string

beforeEach(async () => {
  network = await TestNetwork.start()
  folder = mkdtempSync(join(tmpdir(), 'restored-backup-'))
})
afterEach(async () => {
  await network.close()
  rmSync(folder, { recursive: true, force: true })
})

const isSigned = (token: string) => token.split('.').length === 3

async function readToken({ sessionId, apiSessionToken: token }: TestClient): Promise<string> {
  return (await network.world.send({ method: 'GET', path: `${CLIENT}/sessions/${sessionId}`, token })).body.data.token
}

it('tokens are opaque again until that router returns, which receives everything; then clients get tokens by another key', async () => {
  const { world } = network
  const serviceId = await network.service()
  const old = await network.router()
  await network.terminator(serviceId, old)
  const enrolled = await enrolledRouter(world, { name: newName('router') })
  const client = await network.client(serviceId)
  const file = join(folder, 'backup')
  await createBackup({ directory: world.directory, file, now: world.clock.now() })
  const following = await FollowingRouter.connect(network.address, enrolled)
  following.subscribe()
  await following.reach(world.controller.routers.model.index)
  const signedBefore = await readToken(client)
  expect(isSigned(signedBefore)).toBe(true)
  await following.wire.close()

  await network.restart(() =>
    restoreBackup({ file, directory: world.directory, now: world.clock.now(), isForced: false }),
  )

  expect(await readToken(client)).toBe(client.token)
  const back = await network.reconnect(old.id, old)
  expect(await back.dial(client)).toMatchObject({ type: 20219 })
  expect(await back.dial({ ...client, token: signedBefore })).toMatchObject({ type: 20002, code: 3 })

  const { replica } = following
  const returned = await FollowingRouter.connect(network.address, enrolled, replica)
  returned.subscribe()
  const indexBefore = replica.index
  while (returned.states === 0) await returned.wire.next()
  await returned.reach(network.world.controller.routers.model.index)
  expect(replica.index).toBeGreaterThan(indexBefore)
  expect(replica.faults).toEqual([])
  const signed = await readToken(client)
  expect(isSigned(signed)).toBe(true)
  await returned.wire.close()
  const dialing = await ForwardingRouter.connect(network.address, enrolled, undefined, 2)
  network.link(dialing, back)
  for (const router of [back, dialing])
    expect(await router.dial({ ...client, token: signed })).toMatchObject({ type: 20219 })
  expect(await dialing.dial({ ...client, token: signedBefore })).toMatchObject({ type: 20002, code: 3 })
  expect(await back.dial(client)).toMatchObject({ type: 20219 })
  await dialing.wire.close()
})
