// Many sessions end along with another record: no secret stays behind, and no other request waits long.
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { sessions } from '../../src/definitions/resources/sessions.ts'
import type { AnyField, Fields } from '../../src/definitions/schema/fields.ts'
import { newId, newToken } from '../../src/foundation/ids.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { SqliteExecutor } from '../../src/storage/sqlite/executor.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { followCommits } from '../world/projections.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let services: string[]

const MINUTE = 60_000

beforeAll(async () => {
  people = await People.in(world)
  await people.manage('POST', '/service-policies', {
    name: 'everything to all',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
  })
  services = []
  for (const name of ['web', 'mail', 'files']) {
    const creation = await people.manage('POST', '/services', { name, encryptionRequired: true })
    services.push(creation.id)
  }
})
afterEach(() => vi.restoreAllMocks())

/** A person with API sessions, each of which dials every service. */
async function dialer(apiSessions: number) {
  const person = await people.person()
  const tokens: string[] = []
  const secrets: string[] = []
  for (let sequence = 0; sequence < apiSessions; sequence++) {
    const token = await people.sessionOf(person)
    tokens.push(token)
    const own = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    secrets.push(...(await dial(own.body.data.id, person.id)))
  }
  return { ...person, tokens, secrets }
}

/** Stores sessions for all services, as dialing does. Returns their tokens. */
function dial(apiSessionId: string, identityId: string, times = 1): Promise<string[]> {
  return world.system.write(async (tx) => {
    const tokens: string[] = []
    for (let sequence = 0; sequence < times; sequence++) {
      for (const serviceId of services) {
        const values = {
          id: newId(),
          apiSessionId,
          identityId,
          serviceId,
          type: sequence === 0 ? ('Dial' as const) : ('Bind' as const),
          opaqueToken: newToken(),
        }
        await world.controller.entities.insert(tx, sessions, newEntity(tx, sessions, values), { audit: 'none' })
        tokens.push(values.opaqueToken)
      }
    }
    return tokens
  })
}

const auditText = async () =>
  JSON.stringify(await world.controller.store.db.selectFrom('audit_records').selectAll().execute())

/** How often each kind of change was audited while `act` ran: operation and resource, with the count of the record. */
async function audited(act: () => Promise<unknown>): Promise<string[]> {
  const records = () => world.controller.store.db.selectFrom('audit_records').selectAll().orderBy('n').execute()
  const before = (await records()).length
  await act()
  return (await records()).slice(before).map(({ operation, resource, count }) => `${operation} ${resource} ${count}`)
}

type Dialer = Awaited<ReturnType<typeof dialer>>

const ends: Readonly<Record<string, (victim: Dialer) => Promise<unknown>>> = {
  'signing out': ({ tokens }) =>
    Promise.all(tokens.map((token) => world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token }))),
  'the end of idleness': async () => {
    world.clock.advance(31 * MINUTE)
    await world.controller.auth.apiSessions.termination.deleteExpired(world.system)
    people = await People.in(world)
  },
  disabling: ({ id }) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
  'deleting the identity': ({ id }) => people.manage('DELETE', `/identities/${id}`),
  'deleting the authenticator': ({ authenticatorId }) => people.manage('DELETE', `/authenticators/${authenticatorId}`),
  'an administrator who ends them': async ({ tokens }) => {
    for (const token of tokens) {
      const { body } = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
      await world.send({ method: 'DELETE', path: `${MANAGEMENT}/api-sessions/${body.data.id}`, token: people.token })
    }
  },
}

describe('sessions that are ended', () => {
  it.each(Object.keys(ends))(
    'by %s leave no token in the audit, and no record of sessions for services',
    async (how) => {
      const victim = await dialer(2)

      const records = await audited(() => (ends[how] as (victim: Dialer) => Promise<unknown>)(victim))

      const left = await world.controller.store.db
        .selectFrom('sessions')
        .select('id')
        .where('identityId', '=', victim.id)
        .execute()
      const text = await auditText()
      expect(left).toEqual([])
      expect(records.filter((record) => / sessions /.test(record))).toEqual([])
      for (const secret of [...victim.secrets, ...victim.tokens]) expect(text).not.toContain(secret)
    },
  )

  it.each(Object.keys(ends).filter((how) => how !== 'deleting the identity'))(
    'by %s are sessions of an identity that has none from then on',
    async (how) => {
      const victim = await dialer(2)
      const hasApiSession = async () => (await people.manage('GET', `/identities/${victim.id}`)).hasApiSession
      const before = await hasApiSession()

      await (ends[how] as (victim: Dialer) => Promise<unknown>)(victim)

      expect([before, await hasApiSession()]).toEqual([true, false])
    },
  )

  it('along with their service leave no token in the audit', async () => {
    const { id } = await people.manage('POST', '/services', { name: 'going', encryptionRequired: true })
    services.push(id)
    const { secrets } = await dialer(2)
    services.pop()

    const records = await audited(() => people.manage('DELETE', `/services/${id}`))

    const text = await auditText()
    expect(records).toEqual(['delete services 1'])
    for (const secret of secrets) expect(text).not.toContain(secret)
  })

  it('along with their identity are one audit record with their count', async () => {
    const { id } = await dialer(5)

    const records = await audited(() =>
      world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
    )

    expect(records.sort()).toEqual(['delete api-sessions 5', 'update identities 1'])
  })
})

describe('ending many sessions', () => {
  /** How many statements ran while `act` did. */
  async function statements(act: () => Promise<unknown>): Promise<number> {
    const spy = vi.spyOn(SqliteExecutor.prototype, 'executeQuery')
    await act()
    const { length } = spy.mock.calls
    vi.restoreAllMocks()
    return length
  }

  const cascades: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    disabling: (id) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
    'deleting the identity': (id) => people.manage('DELETE', `/identities/${id}`),
  }

  it.each(Object.keys(cascades))('by %s takes as many statements as ending few', async (how) => {
    const [few, many] = [await dialer(2), await dialer(40)]
    const act = cascades[how] as (id: string) => Promise<unknown>

    const counts = [await statements(() => act(few.id)), await statements(() => act(many.id))]

    expect(counts[1]).toBe(counts[0])
  })

  it('for a service takes as many statements as ending few', async () => {
    const creation = async (name: string) =>
      (await people.manage('POST', '/services', { name, encryptionRequired: true })).id as string
    const [few, many] = [await creation('few'), await creation('many')]
    const all = services
    services = [few]
    await dialer(2)
    services = [many]
    await dialer(30)
    services = all

    const resource = resources.find(({ plural }) => plural === 'services')
    if (!resource) throw new Error('there are no services')
    const counts = [
      await statements(() => world.controller.entities.remove(world.system, resource, few)),
      await statements(() => world.controller.entities.remove(world.system, resource, many)),
    ]

    expect(counts[1]).toBe(counts[0])
  })

  it('removes at most some hundred unusable rows in a transaction', async () => {
    const world = await testController()
    const { id: identityId, token } = await world.signIn()
    const { body } = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    const apiSessionId = body.data.id
    const serviceIds = await world.system.write(async (tx) => {
      const resource = resources.find(({ plural }) => plural === 'services')
      if (!resource) throw new Error('there are no services')
      const ids: string[] = []
      for (let sequence = 0; sequence < 2_500; sequence++) {
        ids.push(
          (
            await world.controller.entities.insert(
              tx,
              resource,
              newEntity(tx, resource, { name: `service ${sequence}` }),
              { audit: 'none' },
            )
          ).id,
        )
      }
      return ids
    })
    await world.system.write(async (tx) => {
      for (const serviceId of serviceIds) {
        for (const type of ['Dial', 'Bind']) {
          const values = { apiSessionId, identityId, serviceId, type, opaqueToken: newToken(), hasSignedToken: 0 }
          const at = tx.clock.now()
          await tx.db
            .insertInto('sessions')
            .values({ ...values, id: newId(), createdAt: at, updatedAt: at, tags: '{}' } as never)
            .execute()
        }
      }
    })
    const ended: number[] = []
    await followCommits(world.controller.store, (changes) => {
      ended.push(changes.filter(({ operation }) => operation === 'delete').length)
    })

    world.clock.advance(31 * MINUTE)
    await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

    expect(Math.max(...ended)).toBeLessThanOrEqual(401)
    expect(ended.reduce((sum, count) => sum + count, 0)).toBe(5_001)
    await world.close()
  }, 60_000)
})

it('no record is computed from records that are never audited', () => {
  const depended = resources.flatMap(({ dependsOn }) => Object.keys(dependsOn))
  const silent = resources.filter(({ audit }) => audit === 'none').map(({ plural }) => plural)

  expect(depended.filter((plural) => silent.includes(plural as (typeof silent)[number]))).toEqual([])
})

it('every field that holds a token, a password or a secret is masked in the audit', () => {
  const named = (fields: Fields): [string, AnyField][] =>
    Object.entries(fields).flatMap(([name, field]) => [
      [name, field] as [string, AnyField],
      ...(field.kind.members ? named(field.kind.members) : []),
    ])
  const unmasked = resources.flatMap(({ plural, fields, variants }) =>
    [fields, ...Object.values(variants ?? {})]
      .flatMap((all) => named(all as Fields))
      .filter(([name, { kind }]) => kind.column === 'text' && /token|password|secret/i.test(name) && !kind.members)
      // The words of a choice are public.
      .filter(([, { kind, options }]) => !options.secret && !options.masked && !kind.schema.enum)
      .map(([name]) => `${plural}.${name}`),
  )

  expect(unmasked).toEqual([])
})
