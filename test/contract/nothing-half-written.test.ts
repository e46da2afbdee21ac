// A change is written whole or not at all: wherever the database fails in the middle of one, nothing of it stays.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { contentsOf, tablesOf } from '../world/contents.ts'
import type { TestController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let sequence = 0
const newName = (what: string) => `${what} ${++sequence}`

beforeAll(async () => {
  manage = await managementOf(world)
  await watchTables()
})

/** One request that changes much, on a network of its own. */
interface Change {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

/** A service that is hosted, configured and granted, and an identity that all of it is about. */
async function network() {
  const attribute = newName('attribute')
  const type = await manage.make('config-types', { name: newName('type') })
  const own = await manage.make('configs', { name: newName('config'), configTypeId: type, data: {} })
  const instead = await manage.make('configs', { name: newName('config'), configTypeId: type, data: {} })
  const service = await manage.make('services', {
    name: newName('service'),
    encryptionRequired: true,
    configs: [own],
    roleAttributes: [attribute],
  })
  const router = await manage.make('edge-routers', {
    name: newName('router'),
    isTunnelerEnabled: true,
    roleAttributes: [attribute],
  })
  const check = await manage.make('posture-checks', {
    name: newName('check'),
    typeId: 'DOMAIN',
    domains: ['a'],
    roleAttributes: [attribute],
  })
  const { id: identity } = await world.signIn({ name: newName('identity'), roleAttributes: [attribute] })
  await manage.make('enrollments', {
    identityId: identity,
    method: 'ott',
    expiresAt: new Date(world.clock.now() + 3_600_000).toISOString(),
  })
  await manage.change('PATCH', `/identities/${identity}`, { serviceHostingCosts: { [service]: 7 } })
  await manage.change('POST', `/identities/${identity}/service-configs`, [{ serviceId: service, configId: instead }])
  await manage.make('terminators', { service, router, binding: 'transport', address: 'tcp:localhost:1' })
  const everything = { semantic: 'AnyOf', name: newName('policy') }
  await manage.make('service-policies', {
    ...everything,
    type: 'Dial',
    identityRoles: [`@${identity}`, '#a'],
    serviceRoles: [`@${service}`],
    postureCheckRoles: [`@${check}`],
  })
  await manage.make('edge-router-policies', {
    ...everything,
    identityRoles: [`@${identity}`],
    edgeRouterRoles: [`@${router}`],
  })
  await manage.make('service-edge-router-policies', {
    ...everything,
    serviceRoles: [`@${service}`],
    edgeRouterRoles: [`@${router}`],
  })
  return { type, own, instead, service, router, check, identity }
}
type Network = Awaited<ReturnType<typeof network>>

const changes: Readonly<Record<string, (network: Network) => Change>> = {
  'making an identity with an enrollment': ({ service }) => ({
    method: 'POST',
    path: '/identities',
    body: {
      name: newName('identity'),
      type: 'User',
      isAdmin: false,
      roleAttributes: ['a'],
      serviceHostingCosts: { [service]: 1 },
      enrollment: { ott: true },
    },
  }),
  'making an edge router that tunnels': () => ({
    method: 'POST',
    path: '/edge-routers',
    body: { name: newName('router'), isTunnelerEnabled: true, roleAttributes: ['a'] },
  }),
  'making a policy': ({ service }) => ({
    method: 'POST',
    path: '/service-policies',
    body: {
      name: newName('policy'),
      type: 'Bind',
      semantic: 'AnyOf',
      identityRoles: ['#a'],
      serviceRoles: [`@${service}`],
    },
  }),
  'giving an edge router another name': ({ router }) => ({
    method: 'PATCH',
    path: `/edge-routers/${router}`,
    body: { name: newName('router'), roleAttributes: ['b'] },
  }),
  'taking its tunneler from an edge router': ({ router }) => ({
    method: 'PUT',
    path: `/edge-routers/${router}`,
    body: { name: newName('router') },
  }),
  'letting an edge router enroll again': ({ router }) => ({
    method: 'POST',
    path: `/edge-routers/${router}/re-enroll`,
  }),
  'giving an identity configs': ({ identity, service, own }) => ({
    method: 'POST',
    path: `/identities/${identity}/service-configs`,
    body: [{ serviceId: service, configId: own }],
  }),
  'disabling an identity': ({ identity }) => ({
    method: 'POST',
    path: `/identities/${identity}/disable`,
    body: { durationMinutes: 5 },
  }),
  'changing a service': ({ service, instead }) => ({
    method: 'PATCH',
    path: `/services/${service}`,
    body: { configs: [instead], roleAttributes: ['b', 'c'] },
  }),
  'deleting an identity': ({ identity }) => ({ method: 'DELETE', path: `/identities/${identity}` }),
  'deleting a service': ({ service }) => ({ method: 'DELETE', path: `/services/${service}` }),
  'deleting an edge router': ({ router }) => ({ method: 'DELETE', path: `/edge-routers/${router}` }),
  'deleting a posture check': ({ check }) => ({ method: 'DELETE', path: `/posture-checks/${check}` }),
}

const WAYS = ['insert', 'update', 'delete'] as const
interface Write {
  readonly table: string
  readonly way: (typeof WAYS)[number]
}

const inDatabase = (...statements: string[]) =>
  world.system.write(async ({ db }) => {
    for (const statement of statements) await sql.raw(statement).execute(db)
  })

/** Tables that commits write, besides those that their transactions do. */
const WRITTEN_BY_COMMITS: readonly string[] = ['commit_position', 'ended_sessions', 'model_changes']

/** Makes every table note how it is written, and refuse to be where a test says so, but for what commits write, also those of these tests. */
async function watchTables(): Promise<void> {
  const watched = (await tablesOf(world)).filter((table) => !WRITTEN_BY_COMMITS.includes(table))
  const all = watched.flatMap((table) => WAYS.map((way) => ({ table, way })))
  await inDatabase(
    'create temp table seen (tableName text, way text)',
    'create temp table broken (tableName text, way text)',
    ...all.map(
      ({ table, way }) => `create temp trigger watch_${table}_${way} before ${way} on main.${table} begin
        insert into seen values ('${table}', '${way}');
        select raise(abort, 'the disk is broken')
          where exists (select 1 from broken where tableName = '${table}' and way = '${way}');
      end`,
    ),
  )
}

/** Returns the writes of a change: its tables, and the kinds of statements. */
async function writesOf(send: () => Promise<unknown>): Promise<Write[]> {
  await inDatabase('delete from temp.seen')
  await send()
  const { rows } = await sql<{ tableName: string; way: Write['way'] }>`
    select distinct tableName, way from temp.seen
  `.execute(world.controller.store.db)
  return rows.map(({ tableName, way }) => ({ table: tableName, way }))
}

/** Every row of every table but the position of the last commit. */
async function rowsOf(subject: TestController): Promise<string> {
  return (await contentsOf(subject)).replace(/^commit_position .*$/m, '')
}

/** Returns the network as callers are shown it. */
async function shownOf({ identity, service, router, check }: Network): Promise<string> {
  const paths = [
    `/identities/${identity}`,
    `/identities/${identity}/services`,
    `/identities/${identity}/edge-routers`,
    `/identities/${identity}/service-configs`,
    `/services/${service}`,
    `/services/${service}/identities`,
    `/services/${service}/edge-routers`,
    `/services/${service}/terminators`,
    `/services?asIdentity=${identity}&configTypes=all`,
    `/edge-routers/${router}`,
    `/identities/${router}`,
    `/posture-checks/${check}`,
    '/service-policies?limit=-1',
    '/edge-router-policies?limit=-1',
    '/summary',
  ]
  const readView = await Promise.all(paths.map((path) => manage.call('GET', path)))
  return readView.map(({ body }) => JSON.stringify(body.data ?? body.error.code)).join('\n')
}

describe.each(Object.entries(changes))('%s', (_what, changeOf) => {
  it('leaves nothing behind where any of its writes fails, and succeeds once it can', async () => {
    expectFaults(/UNHANDLED/)
    const example = changeOf(await network())
    const writes = await writesOf(() => manage.change(example.method, example.path, example.body))
    expect(writes.length).toBeGreaterThan(1)

    const subject = await network()
    const { method, path, body } = changeOf(subject)
    const [stored, shown] = [await rowsOf(world), await shownOf(subject)]
    for (const { table, way } of writes) {
      await inDatabase(`insert into temp.broken values ('${table}', '${way}')`)

      const response = await manage.call(method, path, body)

      await inDatabase('delete from temp.broken')
      expect([table, way, response.status]).toEqual([table, way, 500])
      expect((await rowsOf(world)) === stored).toBe(true)
      expect(await shownOf(subject)).toBe(shown)
    }
    await manage.change(method, path, body)
  })
})

describe.each([
  ['position', 'update on main.commit_position'],
  ['change for routers', 'insert on main.model_changes'],
])('a commit whose %s cannot be written', (_what, write) => {
  it('leaves nothing behind, and the next one succeeds', async () => {
    expectFaults(/UNAVAILABLE/)
    // Changes for routers are written once a router of release 2 has connected.
    await world.controller.sessionTokens.beginSigning(world.system)
    await inDatabase(`create temp trigger refuse_commit before ${write}
      when exists (select 1 from main.services where name = 'unlucky') begin
        select raise(abort, 'the disk is broken');
      end`)
    const before = await contentsOf(world)

    const response = await manage.call('POST', '/services', { name: 'unlucky', encryptionRequired: true })

    expect(response.status).toBe(503)
    expect(await contentsOf(world)).toBe(before)
    await manage.make('services', { name: newName('lucky'), encryptionRequired: true })
    await inDatabase('drop trigger temp.refuse_commit')
  })
})
