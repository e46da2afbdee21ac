// Webhooks of several controllers: one sends what all of them know, another one goes on with it, and each sends what it observes of its routers.
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTimers } from '../../server/timers.ts'
import { NO_RUN } from '../../src/maintenance/events/cursor.ts'
import type { TestController } from '../world/controller.ts'
import { authorityFile } from '../world/endpoints.ts'
import { type Management, managementOf } from '../world/management.ts'
import { RoutedCluster } from '../world/router/routed-cluster.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'
import { openReceiver, type Receiver } from '../world/webhook-receiver.ts'

const SOON = { timeout: 30_000, interval: 20 }
const authority = authorityFile()
const settings = { 'webhooks.allowPrivate': true, 'webhooks.caFile': authority.path }

let receiver: Receiver
let nodes: TestController[]
let manage: Management
let stops: (() => void)[]

afterAll(() => authority.remove())
// After the cluster has closed.
afterEach(() => receiver?.close())
const world = useClusterPerTest(RoutedCluster)
beforeEach(async () => {
  receiver = await openReceiver()
  nodes = [await world.cluster.open('first', settings)]
  await expect.poll(() => nodes[0]!.controller.cluster?.hasTimers, SOON).toBe(true)
  nodes.push(await world.cluster.open('second', settings))
  manage = await managementOf(nodes[0]!)
  stops = nodes.map(({ controller }) => startTimers(controller))
})
afterEach(() => {
  for (const stop of stops) stop()
})

/** The controller that drains, and the one that goes on with its duties: to the other one, and back. */
const HANDOVERS = [
  ['first', 'second'],
  ['second', 'first'],
] as const

async function setDraining(name: string, isDraining: boolean): Promise<void> {
  const { cluster } = nodes.find(({ controller }) => controller.cluster?.name === name)!.controller
  await cluster?.nodes.drain(name, isDraining)
  if (!isDraining) await expect.poll(() => cluster?.nodes.isDraining, SOON).toBe(false)
}

const holder = () => nodes.find(({ controller }) => controller.cluster?.hasTimers)?.controller.cluster?.name

/** Makes a webhook. Resolves once all controllers follow the events for it. */
async function makeWebhook(types: readonly string[]): Promise<void> {
  const body = { name: 'hook', address: receiver.url, secret: 'a secret of both of them', types }
  await manage.make('controller/webhooks', body)
  for (const { controller } of nodes) await expect.poll(() => controller.events.watcherCount, SOON).toBeGreaterThan(0)
}

const describeEvents = () =>
  receiver.accepted
    .map(({ event }) => `${event.type} at ${event.controller ?? 'any'}: ${event.audit?.entityName ?? event.id}`)
    .toSorted()

const namesOf = () => receiver.accepted.map(({ event }) => event.audit.entityName)

async function makeServices(prefix: string): Promise<string[]> {
  const names = [1, 2, 3].map((number) => `${prefix} ${number}`)
  for (const name of names) await manage.make('services', { name, encryptionRequired: false })
  return names
}

describe('webhooks of two controllers', () => {
  it('receive each event once, also after the other controller has gone on with them, and back', async () => {
    const body = { name: 'hook', address: receiver.url, secret: 'a secret of both of them', types: ['record-created'] }
    await manage.make('controller/webhooks', body)
    const expected = ['hook', ...(await makeServices('before'))]
    await expect.poll(namesOf, SOON).toEqual(expected)

    for (const [from, to] of HANDOVERS) {
      await setDraining(from, true)
      await expect.poll(holder, SOON).toBe(to)
      expected.push(...(await makeServices(`after ${from}`)))
      await expect.poll(namesOf, SOON).toEqual(expected)
      await setDraining(from, false)
    }
    expected.push(...(await makeServices('at the end')))
    await expect.poll(namesOf, SOON).toEqual(expected)
  })

  it('receive the events of routers at each of them once, with its name, and what both know once', async () => {
    await makeWebhook(['router-online', 'router-offline', 'record-created', 'api-session-begun'])
    const router = await world.cluster.router(nodes[0]!, 'second')
    await world.cluster.router(nodes[0]!, 'first')
    const { apiSessionId } = await nodes[1]!.signInAgain((await nodes[1]!.signIn()).id)
    const marks = ['one', 'two']
    for (const name of marks) await manage.make('services', { name, encryptionRequired: false })
    await router.close()

    const isExpected = /^router-o|: (one|two)$/
    await expect.poll(() => describeEvents().filter((line) => isExpected.test(line)).length, SOON).toBeGreaterThan(4)
    const lines = describeEvents()
    expect(lines.filter((line) => line.startsWith('router-'))).toEqual([
      `router-offline at second: ${router.id}`,
      expect.stringMatching(/^router-online at first: /),
      `router-online at second: ${router.id}`,
    ])
    expect(lines.filter((line) => line.startsWith('record-created') && isExpected.test(line))).toHaveLength(2)
    await expect
      .poll(() => describeEvents().filter((line) => line === `api-session-begun at any: ${apiSessionId}`), SOON)
      .toHaveLength(1)
  })

  it('receive each event of a router once, also while another controller begins to send what all know', async () => {
    await makeWebhook(['router-online', 'router-offline'])
    const expected: string[] = []
    for (const [from, to] of HANDOVERS) {
      // Before one drains, which takes no new connections.
      const router = await world.cluster.router(nodes[0]!, 'second')
      await setDraining(from, true)
      await expect.poll(holder, SOON).toBe(to)
      await router.close()
      expected.push(`router-offline at second: ${router.id}`, `router-online at second: ${router.id}`)
      await setDraining(from, false)
      await expect
        .poll(() => describeEvents().filter((line) => !line.startsWith('gap')), SOON)
        .toEqual(expected.toSorted())
    }
    const ids = receiver.accepted.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('are told about a gap if a controller begins anew, which may have missed events', async () => {
    await makeWebhook(['router-offline'])
    const { db } = nodes[1]!.controller.store
    const readCursor = async () => (await db.selectFrom('webhooks').select('cursor').executeTakeFirst())?.cursor
    await expect.poll(readCursor, SOON).not.toContain(NO_RUN)
    const [, second] = nodes
    stops.pop()?.()
    await world.cluster.stop(second!)
    nodes[1] = await world.cluster.open('second', settings, second!.directory)
    stops.push(startTimers(nodes[1].controller))

    await expect
      .poll(() => receiver.accepted.map(({ event }) => event), SOON)
      .toEqual([{ type: 'gap', missed: ['network'] }])
  })
})
