// A controller is killed while eight clients write: every acknowledged change is there, and no change is there in part.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { listSetTables } from '../../src/definitions/model/columns.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { untyped } from '../../src/storage/untyped.ts'
import { cleanEnvironment, serve } from '../world/binary.ts'
import { ADMIN, copyOfTemplate, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'
import { managementOf } from '../world/management.ts'
import { random } from '../world/random.ts'
import { type State, storm, type Tracked } from '../world/storm.ts'

// Twenty by `npm run test:kill`.
const ROUNDS = Number(process.env.KILL_ROUNDS ?? 2)
const CLIENTS = 8
/** How many writes are acknowledged before the kill, at least: a round without them would show nothing. */
const MIN_ACKNOWLEDGED_WRITES = 3 * CLIENTS
const MAX_KILL_DELAY_MS = 1_500

const seed = Date.now() % 1_000_000
const dice = random(seed)
const directory = copyOfTemplate()
const rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')

/** Starts the real controller, lets clients write, and kills it at a random moment. */
async function killedWhileWriting(round: number): Promise<Tracked[]> {
  const served = await serve(
    ['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`],
    cleanEnvironment(),
  )
  const { url } = served
  const transports = Array.from({ length: CLIENTS }, () => createHttpTransport({ url, rootPem }))
  const signedIn = await (transports[0] as (typeof transports)[0]).send({
    method: 'POST',
    path: `${MANAGEMENT}/authenticate?method=password`,
    body: ADMIN,
  })
  const { token } = JSON.parse(signedIn.text).data as { token: string }
  const underWay: Tracked[][] = transports.map(() => [])
  const storms = transports.map((transport, at) => storm(transport, token, seed + 100 * round + at, underWay[at]))
  const allStorms = Promise.all(storms)
  let isOver = false
  const noteEnd = () => {
    isOver = true
  }
  allStorms.then(noteEnd, noteEnd)
  while (!isOver && countAcknowledged(underWay.flat()) < MIN_ACKNOWLEDGED_WRITES) await wait(5)
  await wait(dice.below(MAX_KILL_DELAY_MS))
  await served.stop('SIGKILL')
  const tracked = await allStorms
  await Promise.all(transports.map((transport) => transport.close()))
  return tracked.flat()
}

function countAcknowledged(tracked: readonly Tracked[]): number {
  return tracked.reduce((sum, { acknowledgedCount }) => sum + acknowledgedCount, 0)
}

describe.each(Array.from({ length: ROUNDS }, (_, at) => at + 1))(`killed, round %i (seed ${seed})`, (round) => {
  let tracked: Tracked[]
  let findings: readonly string[]
  let world: TestController

  beforeAll(async () => {
    tracked = await killedWhileWriting(round)
    findings = (await checkDatabase(directory, getDataPaths(directory))).findings
    world = await testController({ directory })
  })
  afterAll(() => world?.stop())

  it('had acknowledged writes, and writes under way', () => {
    expect(countAcknowledged(tracked)).toBeGreaterThanOrEqual(MIN_ACKNOWLEDGED_WRITES)
    expect(tracked.filter(({ may }) => may.length > 1)).not.toEqual([])
  })

  it('has every acknowledged change, and each other one as a whole or not at all', async () => {
    const db = untyped(world.controller.store.db)
    for (const record of tracked) {
      const { plural, name, acknowledgedCount } = record
      const row = await db
        .selectFrom(plural.replaceAll('-', '_'))
        .selectAll()
        .where('name', '=', name)
        .executeTakeFirst()
      const id = record.id ?? (row?.id as string | undefined)
      const changes = await db
        .selectFrom('audit_records')
        .select('n')
        .where('entityId', '=', id ?? name)
        .execute()
      const state = stateOf(row)

      expect(record.may, `${plural} ${name}`).toContainEqual(state)
      const isUnacknowledged = record.may.length > 1
      expect(
        isUnacknowledged ? [acknowledgedCount, acknowledgedCount + 1] : [acknowledgedCount],
        `changes of ${name}`,
      ).toContain(changes.length)
      if (plural === 'identities') {
        const tokens = await db
          .selectFrom('enrollments')
          .select('id')
          .where('identityId', '=', id ?? name)
          .execute()
        expect(tokens, `enrollments of ${name}`).toHaveLength(row ? 1 : 0)
      }
    }
  })

  it('has a whole database, and an audit that is one chain', () => {
    expect(findings).toEqual([])
  })

  it('finds records by just the attributes and roles that they show', async () => {
    for (const resource of resources as readonly AnyResource[]) {
      for (const { field, table } of listSetTables(resource)) {
        const members = `select n, value from ${table}`
        const view = `select t.n, m.value from ${resource.table} t, json_each(t."${field}") m`
        const difference = `select * from (${members} except ${view}) union all select * from (${view} except ${members})`
        const { rows } = await sql.raw(difference).execute(world.controller.store.db)
        expect(rows, `${resource.table}.${field}`).toEqual([])
      }
    }
  })

  it('grants what its rows say, also after further changes', async () => {
    expect(await expectAccessToFollowRows(world)).toBeGreaterThan(0)
    const admin = await managementOf(world)
    for (const { plural, name } of tracked.slice(0, 20)) {
      await admin.call('POST', `/${plural}`, { name: `${name} again`, type: 'Dial', semantic: 'AllOf' })
    }
    const [policy] = await admin.get('/service-policies?limit=1')
    if (policy) await admin.change('PATCH', `/service-policies/${policy.id}`, { identityRoles: ['#north', '#staff'] })

    await expectAccessToFollowRows(world)
  })
})

function stateOf(row: Record<string, unknown> | undefined): State {
  if (!row) return undefined
  const readView = ['roleAttributes', 'identityRoles', 'serviceRoles'].filter((name) => name in row)
  return Object.fromEntries(readView.map((name) => [name, strings(row[name] as string)]))
}

/** Asks the policy index about every identity, and evaluates the policies once more from rows, one by one. Returns how many identities there are. */
async function expectAccessToFollowRows({ controller }: TestController): Promise<number> {
  const { db } = controller.store
  const identities = await db.selectFrom('identities').select(['id', 'roleAttributes']).execute()
  const services = await db.selectFrom('services').select(['id', 'roleAttributes']).execute()
  const policies = await db.selectFrom('service_policies').selectAll().execute()
  const matches = (roles: string, semantic: string, { id, roleAttributes }: { id: string; roleAttributes: string }) => {
    const [wanted, has] = [strings(roles), strings(roleAttributes)]
    const meets = (role: string) => role === '#all' || role === `@${id}` || has.includes(role.slice(1))
    return wanted.length > 0 && (semantic === 'AllOf' ? wanted.every(meets) : wanted.some(meets))
  }
  for (const identity of identities) {
    const granting = policies.filter(({ identityRoles, semantic }) => matches(identityRoles, semantic, identity))
    const grantedServices = services.filter((service) =>
      granting.some(({ serviceRoles, semantic }) => matches(serviceRoles, semantic, service)),
    )

    const listedIds = controller.access.listServices({ id: identity.id, attributes: strings(identity.roleAttributes) })

    expect(listedIds.sort()).toEqual(grantedServices.map(({ id }) => id).sort())
  }
  return identities.length
}

function strings(stored: string): string[] {
  return JSON.parse(stored) as string[]
}
