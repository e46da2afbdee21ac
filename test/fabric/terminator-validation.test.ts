// The validation of terminators: which of them routers are asked about, and which responses count.
import { beforeEach, describe, expect, it } from 'vitest'
import type { ConnectedRouter, ConnectedRouters } from '../../src/network/routers/connected-routers.ts'
import type { TerminatorQuestion } from '../../src/network/routers/router-connection.ts'
import type { LiveTerminator, TerminatorDirectory } from '../../src/network/terminators/terminator-directory.ts'
import { TerminatorValidation } from '../../src/network/terminators/terminator-validation.ts'
import { TestClock } from '../world/controller.ts'

const ROUTER_ID = 'edge-north'

let clock: TestClock
let terminators: Map<string, LiveTerminator>
let messages: (readonly TerminatorQuestion[])[]
let router: ConnectedRouter
let validation: TerminatorValidation

beforeEach(() => {
  clock = new TestClock()
  terminators = new Map()
  messages = []
  router = newConnection()
  const directory = { get: (id: string) => terminators.get(id), listOfRouter: () => terminators.values() }
  const connected = { listEdgeRouters: () => [router] }
  validation = new TerminatorValidation({
    clock,
    connected: connected as unknown as ConnectedRouters,
    directory: directory as unknown as TerminatorDirectory,
    isLeading: () => true,
  })
})

function newConnection(): ConnectedRouter {
  const connection = { validateTerminators: (asked: readonly TerminatorQuestion[]) => messages.push(asked) }
  return { id: ROUTER_ID, connection } as unknown as ConnectedRouter
}

function add(id: string, values: Partial<LiveTerminator> = {}): void {
  const terminator = { id, binding: 'edge', address: id, isSystem: true, createdAt: clock.now(), ...values }
  terminators.set(id, terminator as LiveTerminator)
}

/** The questions since the last time, of all messages. */
const takeQuestions = () => messages.splice(0).flat()
const askedIds = () => takeQuestions().map(({ id }) => id)

function pass(milliseconds: number): void {
  clock.advance(milliseconds)
  validation.tick()
}

describe('a router is asked', () => {
  it('about terminators that are five seconds old, every thirty seconds', () => {
    add('old')
    pass(29_000)
    expect(askedIds()).toEqual([])
    add('new')
    pass(1_000)
    expect(askedIds()).toEqual(['old'])
    pass(30_000)
    expect(askedIds()).toEqual(['new'])
  })

  it('about none that an administrator made', () => {
    add('made', { isSystem: false })
    pass(60_000)
    expect(askedIds()).toEqual([])
  })

  it('by messages of at most 500', () => {
    for (let at = 0; at < 1_001; at += 1) add(`many-${at}`)
    pass(30_000)
    expect(messages.map(({ length }) => length)).toEqual([500, 500, 1])
  })

  it('again after three minutes without a response', () => {
    add('silent')
    pass(30_000)
    const [first] = takeQuestions()
    for (let part = 0; part < 5; part += 1) pass(30_000)
    expect(askedIds()).toEqual([])
    pass(30_000)
    const [second] = takeQuestions()
    expect(second!.marker).not.toBe(first!.marker)
    expect(validation.receive(router, [{ id: 'silent', isValid: false, marker: first!.marker }])).toEqual([])
    expect(validation.receive(router, [{ id: 'silent', isValid: false, marker: second!.marker }])).toEqual(['silent'])
  })

  it('about all of them when it connects again', () => {
    add('one')
    pass(30_000)
    validation.receive(router, [{ id: 'one', isValid: true, marker: takeQuestions()[0]!.marker }])
    pass(30_000)
    expect(askedIds()).toEqual([])
    router = newConnection()
    validation.ask(router)
    expect(askedIds()).toEqual(['one'])
  })

  it('about one that changed since it was confirmed', () => {
    add('one')
    pass(30_000)
    validation.receive(router, [{ id: 'one', isValid: true, marker: takeQuestions()[0]!.marker }])
    add('one', { cost: 5, createdAt: clock.now() - 30_000 })
    pass(30_000)
    expect(askedIds()).toEqual(['one'])
  })
})

describe('a response counts', () => {
  it('with the marker of the question, or without one', () => {
    for (const id of ['marked', 'unmarked', 'mistaken']) add(id)
    pass(30_000)
    const marked = takeQuestions().find(({ id }) => id === 'marked')!
    const states = [
      { id: 'marked', isValid: false, marker: marked.marker },
      { id: 'unmarked', isValid: false, marker: 0n },
      { id: 'mistaken', isValid: false, marker: 99_999n },
    ]
    expect(validation.receive(router, states)).toEqual(['marked', 'unmarked'])
  })

  it('once, and only if the router was asked', () => {
    add('one')
    add('other')
    const deny = (id: string) => validation.receive(router, [{ id, isValid: false, marker: 0n }])
    expect(deny('one')).toEqual([])
    pass(30_000)
    expect(deny('one')).toEqual(['one'])
    expect(deny('one')).toEqual([])
    expect(validation.receive(newConnection(), [{ id: 'other', isValid: false, marker: 0n }])).toEqual([])
  })

  it('not if the terminator changed, or the router asked for it again, since the question', () => {
    add('changed')
    add('repeated')
    pass(30_000)
    add('changed', { cost: 5 })
    validation.confirm(router, 'repeated')
    const states = ['changed', 'repeated'].map((id) => ({ id, isValid: false, marker: 0n }))
    expect(validation.receive(router, states)).toEqual([])
  })
})
