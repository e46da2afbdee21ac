// Tokens that are not accepted: repeated, they cost no signature check; and issuers that do not respond are not asked again and again.
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient } from './client.ts'

const world = useController({ settings: OIDC_SETTINGS })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

/** Runs something, and returns how many signatures it had verified. */
async function countSignatureChecks(run: () => Promise<unknown>): Promise<number> {
  const verify = vi.spyOn(globalThis.crypto.subtle, 'verify')
  try {
    await run()
    return verify.mock.calls.length
  } finally {
    verify.mockRestore()
  }
}

const call = async (token: string) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })).status

const repeat = async (run: () => Promise<unknown>, count = 10) => {
  for (let at = 0; at < count; at++) await run()
}

describe('an access token that is not accepted', () => {
  it.each([
    ['has another signature', (token: string) => `${token.slice(0, -8)}AAAAAAAA`],
    ['has expired', (token: string) => token],
  ])('because it %s costs one signature check, however often it is sent', async (_name, change) => {
    const tokens = await new OpenIdClient(world).signIn(await people.person())
    const token = change(tokens.access_token)
    world.clock.advance(30 * 60_000)
    const statuses = new Set<number>()

    const count = await countSignatureChecks(() => repeat(async () => statuses.add(await call(token))))

    expect([[...statuses], count]).toEqual([[401], 1])
    people = await People.in(world)
  })
})

describe('a token of an external signer that is not accepted', () => {
  const signIn = async (token: string) =>
    (
      await world.send({
        method: 'POST',
        path: `${CLIENT}/authenticate?method=ext-jwt`,
        body: {},
        headers: bearer(token),
      })
    ).status

  it.each([
    ['has expired', { exp: 1 }],
    ['is for another audience', { aud: 'another' }],
  ])('because it %s costs one signature check, however often it is sent', async (_name, claims) => {
    const issuer = new Issuer()
    await issuer.trustedBy(people)
    const token = issuer.token(world, 'some', { claims })

    expect(await countSignatureChecks(() => repeat(() => signIn(token)))).toBe(1)
  })

  it('is accepted as soon as its signer is changed so', async () => {
    const issuer = new Issuer()
    const signerId = await issuer.trustedBy(people, { audience: 'the old one' })
    const { id } = await people.person()
    await people.manage('PATCH', `/identities/${id}`, { externalId: id })
    const token = issuer.token(world, id, { claims: { aud: 'the new one' } })
    const before = await signIn(token)
    await world.send({
      ...{ method: 'PATCH', path: `${MANAGEMENT}/external-jwt-signers/${signerId}`, token: people.token },
      body: { audience: 'the new one' },
    })

    expect([before, await signIn(token)]).toEqual([401, 200])
  })
})
