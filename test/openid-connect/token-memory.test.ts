// The memory of verified access tokens: it grows with sessions that last, not with those that have ended.
import { beforeAll, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { describePrivateState } from '../world/private-state.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const use = async ({ access_token: token }: Tokens) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })).status

const describeTokens = () => describePrivateState(world.controller.openIdConnect.accessTokens)

it('a token whose session has ended is not cached when it is presented again', async () => {
  const before = describeTokens()
  const client = new OpenIdClient(world)
  const tokens = await client.signIn(await people.person())
  const first = await use(tokens)
  const during = describeTokens()
  await client.postForm('/oidc/revoke', { client_id: 'native', token: tokens.refresh_token })

  const later = [await use(tokens), await use(tokens)]

  expect([first, ...later]).toEqual([200, 401, 401])
  expect(during).not.toBe(before)
  expect(describeTokens()).toBe(before)
})

it('a token that has expired is evicted when it is presented again, although its session lasts', async () => {
  const before = describeTokens()
  const tokens = await new OpenIdClient(world).signIn(await people.person())
  const first = await use(tokens)
  world.clock.advance(readClaims(tokens.access_token).exp * 1_000 - world.clock.now())

  expect([first, await use(tokens)]).toEqual([200, 401])
  expect(describeTokens()).toBe(before)
})
