// The end of a session by its client, again and again: it costs the disk one write, in the turn of every other client.
import { beforeEach, describe, expect, it } from 'vitest'
import { People, type Person } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'
import { useUpWrites } from '../world/write-limits.ts'
import { OIDC_SETTINGS, OpenIdClient, type Tokens } from './client.ts'

const world = useControllerPerTest({
  settings: { ...OIDC_SETTINGS, 'session.timeout': '24h', 'limits.writeQueue': 1 },
})
let client: OpenIdClient
let person: Person
let tokens: Tokens

beforeEach(async () => {
  person = await (await People.in(world)).person()
  client = new OpenIdClient(world)
  tokens = await client.signIn(person)
})

const revoke = () => client.postForm('/oidc/revoke', { client_id: 'native', token: tokens.refresh_token })
const signOut = () => client.get(`/oidc/end_session?id_token_hint=${tokens.id_token}`)

const ends: [string, number, () => ReturnType<typeof revoke>][] = [
  ['a revocation', 200, revoke],
  ['a sign-out', 302, signOut],
]

describe.each(ends)('%s', (_name, status, end) => {
  it('of a session that has ended succeeds and writes nothing', async () => {
    const first = await end()
    const { position } = world.controller.store

    const others = [await revoke(), await signOut(), await revoke(), await signOut()]

    expect(first.status).toBe(status)
    expect(others.map((response) => response.status)).toEqual([200, 302, 200, 302])
    expect(world.controller.store.position).toBe(position)
  })

  it('counts as a write of its identity', async () => {
    // The sign-in was counted, too.
    world.clock.advance(1_000)
    useUpWrites(world, person.id)

    const refused = await end()
    world.clock.advance(1_000)
    const next = await end()

    expect([refused.status, refused.headers['retry-after'], next.status]).toEqual([429, '1', status])
  })
})

it('a sign-out waits in the queue of all others, and is refused if that is full', async () => {
  let isFull = true
  // Each commit is followed by the next change at once, so that one waits whenever a request comes.
  const filling = (async () => {
    while (isFull) await world.system.write((tx) => tx.db.selectFrom('identities').select('id').limit(1).execute())
  })()

  const refused = await signOut()
  isFull = false
  await filling

  expect(refused.status).toBe(429)
  expect(world.controller.auth.apiSessions.isSignedIn(person.id, world.clock.now())).toBe(true)
  expect((await signOut()).status).toBe(302)
  expect(world.controller.auth.apiSessions.isSignedIn(person.id, world.clock.now())).toBe(false)
})
