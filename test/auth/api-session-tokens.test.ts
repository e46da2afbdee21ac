// The cache of session tokens, which must not outlive the sessions.
import { expect, it, vi } from 'vitest'
import { ApiSessionTokens } from '../../src/authentication/api-sessions/api-session-tokens.ts'
import { CLIENT, testController } from '../world/controller.ts'

it('a token that was evicted is derived again', () => {
  const tokens = new ApiSessionTokens(Buffer.alloc(32, 1))
  const [first] = [tokens.derive('A'), tokens.derive('B')]

  tokens.evict('A')

  expect(tokens.size).toBe(1)
  expect(tokens.derive('A')).toBe(first)
})

it('the cache holds no token of a session that has ended', async () => {
  const derive = vi.spyOn(ApiSessionTokens.prototype, 'derive')
  const world = await testController()
  const { token } = await world.signIn()
  const tokens = derive.mock.contexts[0] as ApiSessionTokens
  const before = tokens.size

  await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token })

  expect(tokens.size).toBe(before - 1)
  await world.close()
})
