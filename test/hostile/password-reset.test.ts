// A stolen session must not outlive the password that it began with.
import { beforeAll, describe, expect, it } from 'vitest'
import { recoverAdministrator } from '../../src/authentication/administrators/recovery.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

/** The statuses that sessions get when they look at themselves. */
async function statusesOf(...tokens: string[]): Promise<number[]> {
  const responses = await Promise.all(
    tokens.map((token) => world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })),
  )
  return responses.map(({ status }) => status)
}

/** Two sessions of one person, and one of another. */
async function signedIn(values: object = {}) {
  const person = await people.person({ ...values })
  const other = await people.person()
  return {
    person,
    own: await people.sessionOf(person),
    stolen: await people.sessionOf(person),
    foreign: await people.sessionOf(other),
  }
}

const changeOwn = (base: string, { authenticatorId }: Person, token: string, body: object) =>
  world.send({
    method: 'PATCH',
    path: `${base}/current-identity/authenticators/${authenticatorId}`,
    token,
    body: { currentPassword: PASSWORD, ...body },
  })

describe('a password reset', () => {
  it.each([
    ['PATCH', (_: Person) => ({ password: 'another password' })],
    ['PUT', ({ username }: Person) => ({ username, password: 'another password' })],
  ])('by an administrator with %s ends all sessions of that identity', async (method, body) => {
    const { person, own, stolen, foreign } = await signedIn()

    await people.manage(method, `/authenticators/${person.authenticatorId}`, body(person))

    expect(await statusesOf(own, stolen, foreign, people.token)).toEqual([401, 401, 200, 200])
  })

  it('ends sessions that began with a certificate of the identity as well', async () => {
    const { person } = await signedIn()
    const { token } = await world.signIn()
    const sessionId = world.controller.auth.apiSessions.use(token, world.clock.now())?.id ?? ''
    const byCertificate = await world.system.write(async (tx) => {
      const identity = world.controller.auth.apiSessions.get(sessionId)?.identity
      if (!identity) throw new Error('the session is not there')
      const common = { authenticatorId: 'a certificate', ipAddress: '127.0.0.1', configTypes: [] }
      return world.controller.auth.apiSessions.insert(tx, { ...common, identity: { ...identity, id: person.id } })
    })

    await people.manage('PATCH', `/authenticators/${person.authenticatorId}`, { password: 'another password' })

    expect(await statusesOf(world.controller.auth.apiSessions.deriveToken(byCertificate.id))).toEqual([401])
  })

  it('on the data directory ends the sessions of that administrator', async () => {
    const { person, own, stolen, foreign } = await signedIn({ isAdmin: true })

    await recoverAdministrator(
      world.controller,
      world.system,
      { username: person.username, password: 'another password' },
      person.id,
    )

    expect(await statusesOf(own, stolen, foreign)).toEqual([401, 401, 200])
  })
})

describe.each([
  ['client', CLIENT],
  ['management', MANAGEMENT],
])('a password changed by its owner, on the %s API', (_name, base) => {
  it('ends the other sessions of the owner and keeps the one that asked', async () => {
    const { person, own, stolen, foreign } = await signedIn()

    const response = await changeOwn(base, person, own, { password: 'another password' })

    expect([response.status, ...(await statusesOf(own, stolen, foreign))]).toEqual([200, 200, 401, 200])
  })

  it('ends nothing if only the username changes', async () => {
    const { person, own, stolen } = await signedIn()

    await changeOwn(base, person, own, { username: `renamed-${person.username}` })

    expect(await statusesOf(own, stolen)).toEqual([200, 200])
  })

  it('ends nothing if it is refused', async () => {
    const { person, own, stolen } = await signedIn()

    await changeOwn(base, person, own, { currentPassword: 'a wrong password', password: 'another password' })

    expect(await statusesOf(own, stolen)).toEqual([200, 200])
  })
})

describe('an administrator who resets its own password as an administrator', () => {
  it('stays signed in, and its other sessions end', async () => {
    const { person, own, stolen } = await signedIn({ isAdmin: true })

    await world.send({
      method: 'PATCH',
      path: `${MANAGEMENT}/authenticators/${person.authenticatorId}`,
      token: own,
      body: { password: 'another password' },
    })

    expect(await statusesOf(own, stolen)).toEqual([200, 401])
  })
})
