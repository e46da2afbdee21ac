// The messages of `controller node drain` while it waits, and of `controller node resume`.
import { describe, expect, it } from 'vitest'
import { describeRemainder, describeResumption } from '../../commands/administration/node-drain.ts'

describe('what a controller that drains still has', () => {
  it('is its duties and the number of its routers', () => {
    expect(describeRemainder({ duties: ['timers', 'fabric'], routers: 2 })).toBe(
      'the duty timers, the duty fabric, 2 routers',
    )
  })

  it('is one router in the singular', () => {
    expect(describeRemainder({ duties: [], routers: 1 })).toBe('1 router')
  })
})

describe('a controller that is told to take up its work again', () => {
  it('did drain, or had drained', () => {
    for (const state of ['draining', 'drained'])
      expect(describeResumption('two', state)).toBe('two does not drain any more')
  })

  it('did not drain: that is said', () => {
    expect(describeResumption('two', 'live')).toBe('two was not draining: it is live')
    expect(describeResumption('two', 'stopped')).toBe('two was not draining: it is stopped')
  })
})
