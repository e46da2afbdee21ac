// The work by the clock among several controllers: one does it for all, and another one goes on with it.
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTimers } from '../../server/timers.ts'
import { TestCluster } from '../world/cluster.ts'
import type { TestController } from '../world/controller.ts'
import { authorityFile } from '../world/endpoints.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'
import { openReceiver, type Receiver } from '../world/webhook-receiver.ts'

const authority = authorityFile()
const settings = { 'webhooks.allowPrivate': true, 'webhooks.caFile': authority.path }

let receiver: Receiver
let nodes: TestController[]
let manage: Management
let stops: (() => void)[]

afterAll(() => authority.remove())
// After the cluster has closed.
afterEach(() => receiver?.close())
const world = useClusterPerTest(TestCluster)
beforeEach(async () => {
  receiver = await openReceiver()
  nodes = [await world.cluster.open('first', { settings }), await world.cluster.open('second', { settings })]
  await expect.poll(() => nodes[0]!.controller.cluster?.hasTimers).toBe(true)
  manage = await managementOf(nodes[0]!)
  stops = nodes.map(({ controller }) => startTimers(controller))
})
afterEach(() => {
  for (const stop of stops) stop()
})

const namesOf = () => receiver.accepted.map(({ event }) => event.audit.entityName)
const holder = () => nodes.find(({ controller }) => controller.cluster?.hasTimers)?.controller.cluster?.name

async function makeServices(prefix: string): Promise<string[]> {
  const names = [1, 2, 3].map((number) => `${prefix} ${number}`)
  for (const name of names) await manage.make('services', { name, encryptionRequired: false })
  return names
}

describe('webhooks of two controllers', () => {
  it('receive each event once, also after the other controller has gone on with them, and back', async () => {
    const body = { name: 'hook', address: receiver.url, secret: 'a secret of both', types: ['record-created'] }
    await manage.make('controller/webhooks', body)
    const expected = ['hook', ...(await makeServices('before'))]
    await expect.poll(namesOf).toEqual(expected)

    for (const [from, to] of [
      ['first', 'second'],
      ['second', 'first'],
    ] as const) {
      const node = nodes.find(({ controller }) => controller.cluster?.name === from)
      await node!.controller.cluster?.nodes.drain(from, true)
      await expect.poll(holder).toBe(to)
      expected.push(...(await makeServices(`after ${from}`)))
      await expect.poll(namesOf).toEqual(expected)
      await node!.controller.cluster?.nodes.drain(from, false)
      await expect.poll(() => node!.controller.cluster?.nodes.isDraining).toBe(false)
    }
    expected.push(...(await makeServices('at the end')))
    await expect.poll(namesOf).toEqual(expected)
  })
})
