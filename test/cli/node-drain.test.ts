// The messages of `controller node drain` while it waits.
import { describe, expect, it } from 'vitest'
import { describeRemainder } from '../../commands/administration/node-drain.ts'

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
