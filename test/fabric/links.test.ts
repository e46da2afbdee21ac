// Links: what becomes of them when routers report, measure and lose them, come and go, and when an administrator changes them.
import { beforeEach, describe, expect, it } from 'vitest'
import { disconnectedNetwork } from '../../src/access/live-network.ts'
import { AggregatedLog } from '../../src/foundation/aggregated-log.ts'
import { silentLog } from '../../src/foundation/log.ts'
import type { LinkEnds, LinkSettings } from '../../src/network/links/link.ts'
import { DEFAULT_LINK_SETTINGS } from '../../src/network/links/link.ts'
import { Links } from '../../src/network/links/links.ts'
import { Paths } from '../../src/network/links/paths.ts'
import { type ConnectedRouter, ConnectedRouters } from '../../src/network/routers/connected-routers.ts'
import type { LinkFault, RouterConnection } from '../../src/network/routers/router-connection.ts'
import { TestClock } from '../world/controller.ts'

const VERSION = { version: 'v1.6.5', revision: '', buildDate: '', os: '', arch: '' }
const AB = { id: 'ab', destinationId: 'b', protocol: 'tls', dialAddress: 'tls:b:6000', iteration: 1 }
const BC = { ...AB, id: 'bc', destinationId: 'c' }

let clock: TestClock
let connected: ConnectedRouters
let links: Links
let paths: Paths
let losses: string[]
let faults: (LinkFault & { to: string })[]
let storedSettings: LinkSettings
let changeSettings: (ends: LinkEnds, settings: LinkSettings) => void
let a: ConnectedRouter
let b: ConnectedRouter

beforeEach(() => {
  clock = new TestClock()
  connected = new ConnectedRouters(clock, disconnectedNetwork)
  losses = []
  faults = []
  storedSettings = DEFAULT_LINK_SETTINGS
  paths = new Paths()
  for (const id of ['a', 'b', 'c']) paths.setRouterCost(id, { cost: 0, noTraversal: false })
  const settings = {
    get: () => storedSettings,
    onChange: (listener: typeof changeSettings) => {
      changeSettings = listener
    },
  }
  links = new Links({ clock, aggregatedLog: new AggregatedLog(clock, silentLog), connected, paths, settings })
  links.onLost(({ id }, loss) => losses.push(`${id} ${loss}`))
  a = connect('a')
  b = connect('b')
  connect('c')
})

function connect(routerId: string): ConnectedRouter {
  let router: ConnectedRouter
  const connection: RouterConnection = {
    announce: () => {},
    isSilent: false,
    lastHeardAt: Number.NEGATIVE_INFINITY,
    sendFault: (fault: LinkFault) => faults.push({ to: routerId, ...fault }),
    close: () => connected.disconnect(router),
  } as never
  router = connected.connect(
    { routerId, fingerprint: '', version: VERSION, linkListeners: [], hasDataModel: false, isInTurn: true },
    true,
    connection,
  )
  return router
}

/** Lets the links that were reported become old enough. */
const settle = () => clock.advance(1_000)
const pathCost = (from: string, to: string) => links.findPath(from, to)?.cost

describe('a link that a router reports', () => {
  it('is used by paths in both directions, but only after it has settled', () => {
    links.report(a, [AB])
    clock.advance(999)
    expect(links.findPath('a', 'b')).toBeUndefined()
    expect(links.get('ab')?.state).toBe('Pending')
    clock.advance(1)
    expect(links.findPath('a', 'b')?.links.map(({ id }) => id)).toEqual(['ab'])
    expect(links.findPath('b', 'a')?.routerIds).toEqual(['b', 'a'])
    expect(links.get('ab')?.state).toBe('Connected')
  })

  it('costs 65 seconds on each side until a router has measured it', () => {
    links.report(a, [AB])
    settle()
    expect(links.get('ab')?.cost).toBe(1 + 65_000 + 65_000)
    links.recordLatency('b', 'ab', 1_479_484)
    expect(links.get('ab')?.cost).toBe(65_002)
    links.recordLatency('a', 'ab', 2_653_805)
    expect(links.get('ab')).toMatchObject({ cost: 4, sourceLatencyNs: 2_653_805, destinationLatencyNs: 1_479_484 })
    expect(pathCost('a', 'b')).toBe(4 + 10)
  })

  it('is not measured by other routers, nor by numbers that are not latencies', () => {
    links.report(a, [AB])
    for (const [router, latency] of [
      ['c', 1],
      ['a', Number.NaN],
      ['a', -1],
      ['a', Number.NEGATIVE_INFINITY],
    ] as const)
      links.recordLatency(router, 'ab', latency)
    expect(links.get('ab')?.cost).toBe(130_001)
    links.recordLatency('a', 'ab', Number.POSITIVE_INFINITY)
    expect(links.get('ab')?.cost).toBeLessThan(10_000_000)
  })

  it('is ignored if its other end is the same router, or does not exist', () => {
    links.report(a, [
      { ...AB, destinationId: 'a' },
      { ...AB, destinationId: 'unknown' },
    ])
    expect(links.list()).toEqual([])
  })

  it('is kept and not used while its other end is not connected', () => {
    connected.disconnect(b)
    links.report(a, [AB])
    settle()
    expect(links.list()).toHaveLength(1)
    expect(links.isUsable(links.get('ab')!)).toBe(false)
    expect(links.findPath('a', 'b')).toBeUndefined()
    connect('b')
    expect(links.isUsable(links.get('ab')!)).toBe(true)
    expect(links.findPath('a', 'b')).toBeDefined()
  })

  it('belongs to that router: another one cannot replace it', () => {
    links.report(a, [AB])
    links.report(b, [{ ...AB, destinationId: 'c', iteration: 9 }])
    expect(links.get('ab')).toMatchObject({ sourceId: 'a', destinationId: 'b', iteration: 1 })
  })
})

describe('a link that is reported again', () => {
  it('by the same or an earlier attempt stays as it is', () => {
    links.report(a, [{ ...AB, iteration: 2 }])
    links.recordLatency('a', 'ab', 5_000_000)
    links.report(a, [{ ...AB, iteration: 2, dialAddress: 'tls:other:1' }])
    links.report(a, [AB])
    expect(links.get('ab')).toMatchObject({ iteration: 2, dialAddress: 'tls:b:6000', sourceLatencyNs: 5_000_000 })
  })

  it('by a later attempt begins anew, and its circuits are not lost', () => {
    links.report(a, [AB])
    settle()
    links.recordLatency('a', 'ab', 5_000_000)
    links.report(a, [{ ...AB, iteration: 3 }])
    expect(links.get('ab')).toMatchObject({ iteration: 3, cost: 130_001, state: 'Pending' })
    expect(links.findPath('a', 'b')).toBeUndefined()
    settle()
    expect(links.findPath('a', 'b')).toBeDefined()
    expect(losses).toEqual([])
  })

  it('by a connection that was replaced is ignored', () => {
    clock.advance(61_000)
    const later = connect('a')
    links.report(a, [AB])
    expect(links.list()).toEqual([])
    links.report(later, [AB])
    expect(links.list()).toHaveLength(1)
  })
})

describe('a link fails', () => {
  beforeEach(() => {
    links.report(a, [
      { ...AB, iteration: 4 },
      { ...AB, id: 'ab2' },
    ])
    settle()
  })

  it('if one of its routers reports it; the other one is told', () => {
    links.fail('b', 'ab', 4)
    expect(links.get('ab')).toBeUndefined()
    expect(losses).toEqual(['ab failed'])
    expect(faults).toEqual([{ to: 'a', linkId: 'ab', iteration: 4 }])
    expect(links.findPath('a', 'b')?.links.map(({ id }) => id)).toEqual(['ab2'])
  })

  it('if the report names no attempt', () => {
    links.fail('a', 'ab', 0)
    expect(losses).toEqual(['ab failed'])
    expect(faults).toEqual([{ to: 'b', linkId: 'ab', iteration: 4 }])
  })

  it('once, although both routers report it', () => {
    links.fail('a', 'ab', 4)
    links.fail('b', 'ab', 4)
    expect(losses).toEqual(['ab failed'])
    expect(faults).toHaveLength(1)
  })

  it('not if the report is about an earlier attempt, an unknown link, or one of other routers', () => {
    links.fail('a', 'ab', 3)
    links.fail('a', 'unknown', 1)
    links.fail('c', 'ab', 4)
    expect(losses).toEqual([])
    expect(links.list()).toHaveLength(2)
  })
})

describe('when a router loses its connection to the controller', () => {
  beforeEach(() => {
    links.report(a, [AB])
    links.report(b, [BC])
    settle()
    for (const [router, id] of [
      ['a', 'ab'],
      ['b', 'ab'],
      ['b', 'bc'],
      ['c', 'bc'],
    ] as const)
      links.recordLatency(router, id, 2_000_000)
  })

  it('no new path uses its links, and they are reported as unreachable, because they may still carry traffic', () => {
    connected.disconnect(b)
    expect(losses).toEqual(['ab unreachable', 'bc unreachable'])
    expect(links.findPath('a', 'c')).toBeUndefined()
    expect(links.list().map(({ id }) => id)).toEqual(['ab', 'bc'])
  })

  it('its links are as before when it reports them again', () => {
    connected.disconnect(b)
    b = connect('b')
    expect(links.findPath('a', 'b')).toBeDefined()
    // It may have started again: what it dialed has to be confirmed.
    expect(links.findPath('b', 'c')).toBeUndefined()
    links.report(b, [BC])
    expect(pathCost('a', 'c')).toBe(5 + 10 + 5 + 10)
    clock.advance(10_000)
    links.tick()
    expect(losses).toEqual(['ab unreachable', 'bc unreachable'])
  })

  it('its links are lost if it is back and does not report them', () => {
    connected.disconnect(b)
    b = connect('b')
    links.report(b, [])
    clock.advance(9_999)
    links.tick()
    expect(losses).toHaveLength(2)
    clock.advance(1)
    links.tick()
    expect(losses.slice(2)).toEqual(['bc failed'])
    expect(links.list().map(({ id }) => id)).toEqual(['ab'])
  })

  it('the other end may report that they failed', () => {
    connected.disconnect(b)
    links.fail('c', 'bc', 1)
    expect(losses.slice(2)).toEqual(['bc failed'])
    expect(links.get('bc')).toBeUndefined()
  })

  it('its links are not lost if another connection of it is there already', () => {
    clock.advance(61_000)
    const later = connect('b')
    expect(losses).toEqual([])
    links.report(later, [BC])
    expect(links.findPath('a', 'c')).toBeDefined()
  })

  it('links without any connected router are not listed', () => {
    connected.disconnect(a)
    connected.disconnect(b)
    expect(links.list().map(({ id }) => id)).toEqual(['bc'])
  })
})

describe('an administrator', () => {
  beforeEach(() => {
    links.report(a, [AB])
    settle()
  })

  it('sets a link down: paths do not use it, and its circuits have to leave it', () => {
    changeSettings({ ...AB, sourceId: 'a' }, { isDown: true, staticCost: 1 })
    expect(links.findPath('a', 'b')).toBeUndefined()
    expect(losses).toEqual(['ab down'])
    expect(links.get('ab')).toMatchObject({ isDown: true, state: 'Connected' })
    changeSettings({ ...AB, sourceId: 'a' }, { isDown: false, staticCost: 1 })
    expect(links.findPath('a', 'b')).toBeDefined()
    expect(losses).toHaveLength(1)
  })

  it('sets the cost of a link', () => {
    changeSettings({ ...AB, sourceId: 'a' }, { isDown: false, staticCost: 500 })
    expect(links.get('ab')?.cost).toBe(130_500)
    expect(pathCost('a', 'b')).toBe(130_510)
  })

  it('finds the settings of a link applied to the link that replaces it', () => {
    storedSettings = { isDown: true, staticCost: 7 }
    links.report(a, [{ ...AB, id: 'other' }])
    settle()
    expect(links.get('other')).toMatchObject({ isDown: true, staticCost: 7 })
    expect(links.findPath('a', 'b')?.links.map(({ id }) => id)).toEqual(['ab'])
  })

  it('deletes a link: both routers are told to drop it', () => {
    links.remove('ab')
    expect(faults).toEqual([
      { to: 'a', linkId: 'ab', iteration: 1 },
      { to: 'b', linkId: 'ab', iteration: 1 },
    ])
    expect(losses).toEqual(['ab removed'])
    // The router dials again.
    links.report(a, [{ ...AB, iteration: 2 }])
    settle()
    expect(links.findPath('a', 'b')).toBeDefined()
  })
})

it('a router with more links than any network has loses its connection', () => {
  const destinations = Array.from({ length: 160 }, (_, at) => `far-${at}`)
  for (const id of destinations) paths.setRouterCost(id, { cost: 0, noTraversal: false })
  const reports = Array.from({ length: 10_001 }, (_, at) => ({
    ...AB,
    id: `link-${at}`,
    destinationId: destinations[at % destinations.length] ?? '',
  }))
  links.report(a, reports)
  expect(connected.get('a')).toBeUndefined()
  expect(links.list()).toHaveLength(0)
  expect(links.listOfRouter('a')).toHaveLength(10_000)
})

it('two routers have at most 64 links that one of them dialed, and the other one loses nothing by them', () => {
  links.report(
    a,
    Array.from({ length: 200 }, (_, at) => ({ ...AB, id: `link-${at}` })),
  )
  links.report(b, [{ ...AB, id: 'ba', destinationId: 'a' }, BC])
  expect(links.listOfRouter('b').map(({ sourceId }) => sourceId)).toEqual([...Array(64).fill('a'), 'b', 'b'])
  expect(connected.get('a')).toBeDefined()
  expect(connected.get('b')).toBeDefined()
  // Places of links that are gone are free again.
  for (const { id } of links.listOfRouter('a').filter(({ sourceId }) => sourceId === 'a')) links.remove(id)
  links.report(a, [{ ...AB, id: 'again' }])
  expect(links.get('again')).toBeDefined()
})

it('the links of a deleted router are gone', () => {
  links.report(a, [AB])
  links.removeRouter('b')
  expect(links.list()).toEqual([])
  expect(losses).toEqual(['ab failed'])
})
