// Passwords: how many are compared at once, what their hashes cost, what an auth policy demands, and when it locks.
import * as argon2 from 'argon2'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import {
  type PasswordContext,
  PasswordHasher,
  RECOMMENDED_COST,
} from '../../src/authentication/credentials/password-hasher.ts'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { CLIENT, testController } from '../world/controller.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

// As it is, with every call noted.
vi.mock('argon2', { spy: true })

const passwordCost = RECOMMENDED_COST
const world = useController({ passwordCost })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const MINUTE = 60_000
const stranger: PasswordContext = { caller: { kind: 'anonymous' }, origin: { requestId: 'test', address: '192.0.2.1' } }
const CHEAP = { memoryCost: 1024, timeCost: 1, parallelism: 1 } as const

describe('hashing', () => {
  it('costs at least what OWASP recommends', async () => {
    const hash = await new PasswordHasher(1).hash('some password', stranger)

    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  })

  it('lets so many wait, and tells the others to try again', async () => {
    const passwords = new PasswordHasher(3, CHEAP)

    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, () => passwords.hash('some password', stranger)),
    )

    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(refused).toHaveLength(5)
    expect(refused[0]).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS', status: 429, retryAfterSeconds: 1 })
    await expect(passwords.verify(await passwords.hash('x', stranger), 'x', stranger)).resolves.toBe(true)
  })

  it('takes up the work again after being refused', async () => {
    const passwords = new PasswordHasher(1, CHEAP)
    await Promise.allSettled(Array.from({ length: 9 }, () => passwords.verify(undefined, 'some password', stranger)))

    await expect(passwords.verify(undefined, 'some password', stranger)).resolves.toBe(false)
  })

  it('says no where there is no hash, by comparing with one all the same', async () => {
    await expect(new PasswordHasher(1, CHEAP).verify(undefined, 'anything', stranger)).resolves.toBe(false)
  })

  it('takes as much work for a user with a hash of the cost that adopted ones have as for one who does not exist', async () => {
    const passwords = new PasswordHasher(1)
    const adopted = await argon2.hash('some password', { memoryCost: 3_072, timeCost: 1, parallelism: 4 })
    const measure = async (hash: string | undefined) => {
      vi.mocked(argon2.verify).mockClear()
      await passwords.verify(hash, 'another password', stranger)
      const costs = vi.mocked(argon2.verify).mock.calls.map(([phc]) => /m=(\d+),t=(\d+)/.exec(phc) ?? [])
      return costs.reduce((work, [, memory, passes]) => work + Number(memory) * Number(passes), 0)
    }

    expect(await measure(adopted)).toBe(await measure(undefined))
  })

  it.each([
    ['less memory', { ...CHEAP, memoryCost: 512 }, true],
    ['fewer passes', { ...CHEAP, timeCost: 1 }, true],
    ['the same', { ...CHEAP, timeCost: 2 }, false],
    ['more', { memoryCost: 2048, timeCost: 3, parallelism: 1 }, false],
  ])('knows a hash that cost %s', async (_what, cost, isCheap) => {
    const hash = await argon2.hash('some password', cost)

    expect(new PasswordHasher(1, { ...CHEAP, timeCost: 2 }).needsRehash(hash)).toBe(isCheap)
  })
})

describe('a sign-in', () => {
  async function hashOf({ authenticatorId }: Person): Promise<string | null> {
    const row = await world.controller.store.db
      .selectFrom('authenticators')
      .select('passwordHash')
      .where('id', '=', authenticatorId)
      .executeTakeFirstOrThrow()
    return row.passwordHash
  }

  async function setHash({ authenticatorId }: Person, passwordHash: string) {
    await world.system.write(({ db }) =>
      db.updateTable('authenticators').set({ passwordHash }).where('id', '=', authenticatorId).execute(),
    )
  }

  it('hashes anew what was hashed at a lower cost, and only then', async () => {
    const person = await people.person()
    const strong = await hashOf(person)
    await people.sessionOf(person)
    const unchanged = await hashOf(person)
    await setHash(person, await argon2.hash(PASSWORD, CHEAP))

    await people.sessionOf(person)

    expect(unchanged).toBe(strong)
    expect(await hashOf(person)).toMatch(/m=19456,t=2,p=1/)
    expect((await people.signIn(person)).status).toBe(200)
    expect((await people.signIn({ ...person, password: 'wrong horse' })).status).toBe(401)
  })

  it('that others overtake while the password is hashed anew is made as they are', async () => {
    const person = await people.person()
    await setHash(person, await argon2.hash(PASSWORD, CHEAP))

    const responses = await Promise.all([1, 2, 3].map(() => people.signIn(person)))

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await hashOf(person)).toMatch(/m=19456,t=2,p=1/)
  })

  it('that hashes the password anew does not keep its owner from changing it meanwhile', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const path = `${CLIENT}/current-identity/authenticators/${person.authenticatorId}`
    const body = { currentPassword: PASSWORD, password: 'the next horse battery' }
    const { passwords } = world.controller.auth
    const hash = vi.spyOn(passwords, 'hash').mockImplementationOnce(async (...hashed) => {
      // Between the comparison and the change.
      await people.sessionOf(person)
      return passwords.hash(...hashed)
    })
    await setHash(person, await argon2.hash(PASSWORD, CHEAP))

    const changed = await world.send({ method: 'PATCH', path, token, body })

    hash.mockRestore()
    expect([changed.status, changed.body.error]).toEqual([200, undefined])
    expect((await people.signIn({ ...person, password: body.password })).status).toBe(200)
    expect((await people.signIn(person)).status).toBe(401)
  })

  it('by the old password is refused if it is changed while it is compared', async () => {
    const person = await people.person()
    const storedHash = await argon2.hash('another password', CHEAP)

    const [response] = await Promise.all([people.signIn(person), setHash(person, storedHash)])

    expect(response.status).toBe(401)
  })

  it('is refused if its auth policy is closed to passwords while it is hashed anew', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    await setHash(person, await argon2.hash(PASSWORD, CHEAP))
    const close = () =>
      people.manage('PATCH', `/auth-policies/${authPolicyId}`, { primary: { updb: { allowed: false } } })

    const [response] = await Promise.all([people.signIn(person), close()])

    expect(response.status).toBe(401)
  })

  it('costs one comparison at the same price for every username and every mistake', async () => {
    const { passwordHasher } = world.controller.auth
    const person = await people.person()
    const closed = await people.person({ authPolicyId: await people.policy({ updb: { allowed: false } }) })
    const disabled = await people.person()
    await world.system.write((tx) => disableIdentity(world.controller.entities, tx, disabled.id, 0))
    const device = await people.device()
    const attempts = [
      { username: 'unknown user', password: PASSWORD },
      { username: device.id, password: PASSWORD },
      { ...person, password: 'wrong horse' },
      closed,
      disabled,
      person,
    ]
    const compared = vi.mocked(argon2.verify)
    compared.mockClear()

    for (const attempt of attempts) await people.signIn(attempt)

    const hashes = compared.mock.calls.map(([hash]) => hash)
    expect(hashes).toHaveLength(attempts.length)
    for (const hash of hashes) expect(passwordHasher.needsRehash(hash)).toBe(false)
  })

  it('is told to come back later where too many wait', async () => {
    const busy = await testController({ settings: { 'limits.passwordQueue': 1 }, passwordCost })
    const theirs = await People.in(busy)
    const person = await theirs.person()

    const responses = await Promise.all(Array.from({ length: 8 }, () => theirs.signIn(person)))

    const refused = responses.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(5)
    expect(refused[0]?.body.error.code).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0)
    expect((await theirs.signIn(person)).status).toBe(200)
    await busy.close()
  })
})

describe('an auth policy', () => {
  const rules = [
    ['short', { minPasswordLength: 12 }, 'elevenchars', 'twelve chars', 'must be at least 12 characters long'],
    [
      'in one case',
      { requireMixedCase: true },
      'lower case',
      'Lower Case',
      'must hold upper-case and lower-case letters',
    ],
    ['without digit', { requireNumberChar: true }, 'no digits', 'digit 1', 'must hold a digit'],
    [
      'of letters and digits alone',
      { requireSpecialChar: true },
      'letters and 1',
      'letters & 1',
      'must hold a character that is neither letter, digit nor space',
    ],
  ] as const

  async function under(updb: object) {
    const authPolicyId = await people.policy({ updb })
    return { authPolicyId, id: await people.identity({ authPolicyId }) }
  }

  it.each(rules)('refuses a password that is %s, wherever one is set', async (_what, updb, bad, good, reason) => {
    const { authPolicyId, id } = await under(updb)
    const username = `user of ${id}`
    const make = (password: string) =>
      people.ask('POST', '/authenticators', { identityId: id, method: 'updb', username, password })
    const enrolling = await people.identity({ authPolicyId, enrollment: { updb: `enrolls ${id}` } })
    const { enrollment } = await people.manage('GET', `/identities/${enrolling}`)
    const enroll = (password: string) =>
      world.send({
        method: 'POST',
        path: `/edge/client/v1/enroll/updb?token=${enrollment.updb.token}`,
        body: { password },
      })

    const created = [await make(bad), await make(good)]
    const authenticatorId = created[1]?.body.data.id
    const token = await people.sessionOf({ id, authenticatorId, username, password: good })
    const changed = await people.ask('PATCH', `/authenticators/${authenticatorId}`, { password: bad })
    const replaced = await people.ask('PUT', `/authenticators/${authenticatorId}`, { username, password: bad })
    const ownChange = await world.send({
      method: 'PATCH',
      path: `/edge/client/v1/current-identity/authenticators/${authenticatorId}`,
      body: { currentPassword: good, password: bad },
      token,
    })
    const enrolled = [await enroll(bad), await enroll(good)]

    for (const refused of [created[0], changed, replaced, ownChange, enrolled[0]]) {
      expect(refused?.status).toBe(400)
      expect(refused?.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'password', reason } })
      expect(JSON.stringify(refused?.body)).not.toContain(bad)
    }
    expect([created[1]?.status, enrolled[1]?.status]).toEqual([201, 200])
  })

  it('counts characters, not the units of their encoding', async () => {
    const { id } = await under({ minPasswordLength: 6 })

    const response = await people.ask('POST', '/authenticators', {
      identityId: id,
      method: 'updb',
      username: 'of five emoji',
      password: '🐎🔋📎🐎🔋',
    })

    expect(response.body.error?.cause?.reason).toBe('must be at least 6 characters long')
  })
})

describe('a lockout', () => {
  async function lockable(updb: { maxAttempts: number; lockoutDurationMinutes?: number }) {
    const person = await people.person({ authPolicyId: await people.policy({ updb }) })
    const tries = async (...passwords: string[]) => {
      const statuses: number[] = []
      for (const password of passwords) statuses.push((await people.signIn({ ...person, password })).status)
      return statuses
    }
    return { person, tries, shown: () => people.manage('GET', `/identities/${person.id}`) }
  }

  it('comes with the last failure that is allowed, and not before', async () => {
    const { tries, shown } = await lockable({ maxAttempts: 3 })

    const before = await tries('wrong 1', 'wrong 2')
    const stillEnabled = (await shown()).disabled
    const after = await tries('wrong 3', PASSWORD)

    expect([before, stillEnabled, after]).toEqual([[401, 401], false, [401, 401]])
    expect(await shown()).toMatchObject({ disabled: true, disabledAt: new Date(world.clock.now()).toISOString() })
  })

  it('does not come for successes, which reset the count', async () => {
    const { tries } = await lockable({ maxAttempts: 3 })

    const statuses = await tries(
      PASSWORD,
      PASSWORD,
      PASSWORD,
      PASSWORD,
      'wrong',
      'wrong',
      PASSWORD,
      'wrong',
      'wrong',
      PASSWORD,
    )

    expect(statuses.filter((status) => status === 200)).toHaveLength(6)
  })

  it('does not come without a limit', async () => {
    const { tries } = await lockable({ maxAttempts: 0 })

    const statuses = await tries('wrong', 'wrong', 'wrong', 'wrong', PASSWORD)

    expect(statuses.at(-1)).toBe(200)
  })

  it('ends by itself after its time, and begins to count anew', async () => {
    const { tries, shown } = await lockable({ maxAttempts: 2, lockoutDurationMinutes: 5 })
    await tries('wrong', 'wrong')
    const { disabledUntil } = await shown()
    world.clock.advance(5 * MINUTE - 1)
    const early = await tries(PASSWORD)
    world.clock.advance(1)

    const late = await tries('wrong', PASSWORD)

    expect(disabledUntil).toBe(new Date(world.clock.now()).toISOString())
    expect([early, late]).toEqual([[401], [401, 200]])
    people = await People.in(world)
  })

  it('ends with the sessions of the identity, however it signed in', async () => {
    const { person, tries } = await lockable({ maxAttempts: 1 })
    const token = await people.sessionOf(person)

    await tries('wrong')

    const response = await world.send({ method: 'GET', path: '/edge/client/v1/current-api-session', token })
    expect(response.body.error.cause.code).toBe('SESSION_UNKNOWN')
  })

  it('holds against many guesses at the same time, the right one among them', async () => {
    const { person } = await lockable({ maxAttempts: 3 })
    const guesses = ['wrong 1', 'wrong 2', 'wrong 3', 'wrong 4', 'wrong 5', PASSWORD, 'wrong 6', PASSWORD]

    const responses = await Promise.all(guesses.map((password) => people.signIn({ ...person, password })))

    expect(responses.map(({ status }) => status)).toEqual(guesses.map(() => 401))
  })

  it('survives a restart half way', async () => {
    const world = await testController({ passwordCost })
    const theirs = await People.in(world)
    const person = await theirs.person({ authPolicyId: await theirs.policy({ updb: { maxAttempts: 2 } }) })
    await theirs.signIn({ ...person, password: 'wrong' })
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock, passwordCost })
    const back = await People.in(again, 'administers again')
    await back.signIn({ ...person, password: 'wrong' })

    expect((await back.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
    await again.close()
  })

  it('comes from guessing the current password within a session, too', async () => {
    const { person } = await lockable({ maxAttempts: 2 })
    const token = await people.sessionOf(person)
    const path = `/edge/client/v1/current-identity/authenticators/${person.authenticatorId}`
    const guess = () =>
      world.send({ method: 'PATCH', path, body: { currentPassword: 'wrong', password: 'whatever' }, token })

    const statuses = [(await guess()).status, (await guess()).status]

    expect(statuses).toEqual([401, 401])
    expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
  })

  it('does not come while the policy is closed to passwords anyway', async () => {
    const authPolicyId = await people.policy({ updb: { maxAttempts: 1, allowed: false } })
    const person = await people.person({ authPolicyId })

    await people.signIn({ ...person, password: 'wrong' })

    expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(false)
  })
})
