// Durations so long that no date can hold their end: refused, and the longest that is accepted does what it says.
import { beforeAll, describe, expect, it } from 'vitest'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { MAX_DURATION_MS } from '../../src/foundation/clock.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const MAX_MINUTES = MAX_DURATION_MS / 60_000

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const policy = (name: string, lockoutDurationMinutes: number) => {
  const updb = { ...permissivePolicy.primary.updb, maxAttempts: 1, lockoutDurationMinutes }
  return { name, ...permissivePolicy, primary: { ...permissivePolicy.primary, updb } }
}

describe('a lockout', () => {
  it.each([1e11, 1e14, 1e17, 1e300, MAX_MINUTES + 1])('of %d minutes is refused', async (minutes) => {
    const created = await people.ask('POST', '/auth-policies', policy(`for ${minutes}`, minutes))
    const updb = { lockoutDurationMinutes: minutes }
    const patched = await people.ask('PATCH', '/auth-policies/default', { primary: { updb } })

    for (const { status, body } of [created, patched]) {
      expect(status).toBe(400)
      expect(body.error).toMatchObject({
        code: 'COULD_NOT_VALIDATE',
        cause: { field: 'primary.updb.lockoutDurationMinutes' },
      })
    }
  })

  it('of the longest time that is accepted keeps the identity out, and every list readable', async () => {
    const { id: authPolicyId } = await people.manage('POST', '/auth-policies', policy('longest', MAX_MINUTES))
    const person = await people.person({ authPolicyId })
    await people.signIn({ ...person, password: 'wrong' })

    const signIn = await people.signIn(person)
    const list = await people.ask('GET', '/identities?limit=500')
    const { disabled, disabledUntil } = await people.manage('GET', `/identities/${person.id}`)

    expect([signIn.status, list.status, disabled]).toEqual([401, 200, true])
    expect(disabledUntil).toBe(new Date(world.clock.now() + MAX_DURATION_MS).toISOString())
  })
})

describe('disabling an identity', () => {
  it('for the longest time that is accepted leaves every list readable', async () => {
    const person = await people.person()

    const disabled = await people.ask('POST', `/identities/${person.id}/disable`, { durationMinutes: MAX_MINUTES })
    const longer = await people.ask('POST', `/identities/${person.id}/disable`, {
      durationMinutes: MAX_MINUTES + 1,
    })
    const list = await people.ask('GET', '/identities?limit=500')
    const signIn = await people.signIn({ ...person, password: PASSWORD })

    expect([disabled.status, longer.status, list.status, signIn.status]).toEqual([200, 400, 200, 401])
  })
})

describe('a trace', () => {
  it.each(['2400000h', '999999999999h', `${'9'.repeat(400)}h`])('of %s is refused', async (duration) => {
    const id = await people.identity()

    const { status, body } = await people.ask('PUT', `/identities/${id}/trace`, { enabled: true, duration })

    expect([status, body.error.cause.field]).toEqual([400, 'duration'])
  })
})
