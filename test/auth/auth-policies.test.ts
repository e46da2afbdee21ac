// Auth policies as records: the built-in one, what they clamp and refuse, and that one in use stays.
import { beforeAll, describe, expect, it } from 'vitest'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

let sequence = 0
const body = (changed: object = {}) => ({ name: `policy number ${++sequence}`, ...permissivePolicy, ...changed })
const primary = (updb: object) => ({
  ...permissivePolicy.primary,
  updb: { ...permissivePolicy.primary.updb, ...updb },
})

describe('the built-in policy', () => {
  it('allows everything, and has the id default', async () => {
    const policy = await people.manage('GET', '/auth-policies/default')

    expect(policy).toMatchObject({
      id: 'default',
      name: 'Default',
      primary: permissivePolicy.primary,
      secondary: { requireTotp: false },
    })
  })

  it('is that of identities without one', async () => {
    for (const authPolicyId of [undefined, null, '', ' ']) {
      const id = await people.identity(authPolicyId === undefined ? {} : { authPolicyId })

      expect((await people.manage('GET', `/identities/${id}`)).authPolicyId).toBe('default')
    }
  })

  it('can be changed, and cannot be deleted while identities have it', async () => {
    await people.manage('PATCH', '/auth-policies/default', { tags: { changed: true } })

    const response = await people.ask('DELETE', '/auth-policies/default')

    expect([response.status, response.body.error.code]).toEqual([409, 'CAN_NOT_DELETE_REFERENCED_ENTITY'])
  })
})

it('the built-in policy stays for future identities if no identity has it', async () => {
  const world = await testController()
  const theirs = await People.in(world)
  const authPolicyId = await theirs.policy({})
  for (const { id } of await theirs.manage('GET', '/identities?limit=500')) {
    await theirs.manage('PATCH', `/identities/${id}`, { authPolicyId })
  }

  const response = await theirs.ask('DELETE', '/auth-policies/default')

  expect([response.status, response.body.error.code]).toEqual([409, 'CAN_NOT_DELETE_REFERENCED_ENTITY'])
  await world.close()
})

describe('a policy', () => {
  it('keeps numbers within what makes sense', async () => {
    const updb = { minPasswordLength: 1, maxAttempts: -3, lockoutDurationMinutes: -1 }
    const { id } = await people.manage('POST', '/auth-policies', body({ primary: primary(updb) }))

    const policy = await people.manage('GET', `/auth-policies/${id}`)

    expect(policy.primary.updb).toMatchObject({ minPasswordLength: 5, maxAttempts: 0, lockoutDurationMinutes: 0 })
  })

  it('is patched member by member', async () => {
    const { id } = await people.manage('POST', '/auth-policies', body())

    await people.manage('PATCH', `/auth-policies/${id}`, {
      primary: { updb: { minPasswordLength: 9, requireNumberChar: true } },
    })

    const { primary } = await people.manage('GET', `/auth-policies/${id}`)
    expect(primary).toEqual({
      ...permissivePolicy.primary,
      updb: { ...permissivePolicy.primary.updb, minPasswordLength: 9, requireNumberChar: true },
    })
  })

  const parts = Object.entries({ ...permissivePolicy.primary }).flatMap(([part, members]) =>
    Object.keys(members).map((member) => [part, member] as const),
  )

  it.each(parts)('is refused without primary.%s.%s', async (part, member) => {
    const whole = structuredClone(permissivePolicy) as unknown as Record<
      string,
      Record<string, Record<string, unknown>>
    >
    delete whole.primary?.[part]?.[member]

    const response = await people.ask('POST', '/auth-policies', { name: 'incomplete', ...whole })

    expect([response.status, response.body.error.cause.field]).toEqual([400, `primary.${part}.${member}`])
  })

  it.each([
    [{ minPasswordLength: 101 }, 'primary.updb.minPasswordLength'],
    [{ maxAttempts: 1.5 }, 'primary.updb.maxAttempts'],
    [{ allowed: 'yes' }, 'primary.updb.allowed'],
  ])('is refused with %j', async (updb, field) => {
    const response = await people.ask('POST', '/auth-policies', body({ primary: primary(updb) }))

    expect([response.status, response.body.error.cause.field]).toEqual([400, field])
  })

  it.each([
    ['secondary.requireExtJwtSigner', { secondary: { requireTotp: false, requireExtJwtSigner: 'some-signer' } }],
    [
      'primary.extJwt.allowedSigners',
      { primary: { ...permissivePolicy.primary, extJwt: { allowed: true, allowedSigners: ['some-signer'] } } },
    ],
  ])('is refused with a signer that does not exist in %s', async (field, changed) => {
    const response = await people.ask('POST', '/auth-policies', body(changed))

    expect([response.status, response.body.error.code, response.body.error.cause.field]).toEqual([
      404,
      'NOT_FOUND',
      field,
    ])
  })

  it('has a name of its own', async () => {
    const response = await people.ask('POST', '/auth-policies', body({ name: 'Default' }))

    expect([response.status, response.body.error.cause.field]).toEqual([400, 'name'])
  })

  it('that does not exist cannot be given to an identity', async () => {
    const response = await people.ask('POST', '/identities', {
      name: 'under no policy',
      type: 'User',
      isAdmin: false,
      authPolicyId: 'nothing',
    })

    expect([response.status, response.body.error.code]).toEqual([404, 'NOT_FOUND'])
  })

  it('can be deleted once no identity has it', async () => {
    const authPolicyId = await people.policy({})
    const id = await people.identity({ authPolicyId })
    const inUse = await people.ask('DELETE', `/auth-policies/${authPolicyId}`)
    await people.manage('DELETE', `/identities/${id}`)

    const free = await people.ask('DELETE', `/auth-policies/${authPolicyId}`)

    expect([inUse.status, free.status]).toEqual([409, 200])
  })

  it('is known to sign-ins after a restart', async () => {
    const world = await testController()
    const theirs = await People.in(world)
    const person = await theirs.person({ authPolicyId: await theirs.policy({ updb: { allowed: false } }) })
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })

    expect((await (await People.in(again, 'administers again')).signIn(person)).status).toBe(401)
    await again.close()
  })
})
