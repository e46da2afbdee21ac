// Lists of many records by filters that read each of them: they succeed like any other, and do not block the event loop.
import { setImmediate } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const IDENTITIES = 12_000
const names = Array.from({ length: IDENTITIES }, (_, at) => `${at % 2 ? 'É' : 'e'}tage ${at}`)

const world = useController()
let token: string
const ids: string[] = []

beforeAll(async () => {
  token = await world.admin()
  await world.system.write(async (tx) => {
    for (const [at, name] of names.entries()) {
      const values = {
        typeId: 'Default',
        isAdmin: false,
        name,
        externalId: String(IDENTITIES - at),
        roleAttributes: [`a${at % 3_000}`],
      }
      const entity = newEntity(tx, identities, values)
      ids.push(entity.id)
      await world.controller.entities.insert(tx, identities, entity)
    }
  })
}, 120_000)

async function list(filter: string, more = '') {
  const before = world.controller.store.stats().scans
  const path = `${MANAGEMENT}/identities?filter=${encodeURIComponent(filter)}${more}`
  const { status, body } = await world.send({ method: 'GET', path, token })
  return {
    status,
    names: body.data?.map(({ name }: { name: string }) => name) as string[],
    total: body.meta.pagination?.totalCount as number,
    cause: body.error?.cause,
    scans: world.controller.store.stats().scans - before,
  }
}

describe('a list by a filter that looks at every record', () => {
  it('is found in a thread, with the same records and total', async () => {
    const filter = 'name icontains "étage 117" sort by name limit 5'
    const matching = names.filter((name) => name.startsWith('Étage 117'))

    const first = await list(filter)
    const again = await list(filter)

    expect(first.names).toEqual([...matching].sort().slice(0, 5))
    expect(first.total).toBe(matching.length)
    expect([first.scans, again.names]).toEqual([expect.any(Number), first.names])
    expect(first.scans).toBeGreaterThan(0)
  })

  it('is found there without a limit, too', async () => {
    const matching = names.filter((name) => name.startsWith('É') && name.includes('9'))

    const all = await list('name icontains "É" and name contains "9" sort by externalId', '&limit=-1')

    expect([all.names.length, all.total, all.scans]).toEqual([matching.length, matching.length, 1])
    expect(new Set(all.names)).toEqual(new Set(matching))
  })

  it.each([
    ['an order that no index has', 'true sort by externalId limit 3'],
    ['names of other records', 'authPolicy.name icontains "é"'],
    ['tags', 'tags.a icontains "é"'],
    ['sets', 'anyOf(roleAttributes) contains "99"'],
  ])('may be about %s', async (_what, filter) => {
    expect((await list(filter)).status).toBe(200)
  })

  it('leaves the loop to other requests', async () => {
    const terms = Array.from({ length: 100 }, (_, at) => `name icontains "ù${at}"`).join(' or ')
    let isDone = false
    let response = 0
    const costly = list(terms).finally(() => {
      isDone = true
    })

    while (!isDone) {
      expect((await list(`id = "${ids[0]}"`)).names).toEqual([names[0]])
      response += 1
      // Injected requests complete without a turn of the event loop.
      await setImmediate()
    }

    expect([200, 400]).toContain((await costly).status)
    expect(response).toBeGreaterThan(5)
  })
})

describe('a list that an index serves', () => {
  it.each([
    ['by id', () => `id = "${ids[5]}" and name icontains "é"`],
    ['by several ids', () => `id in ["${ids[1]}", "${ids[5]}"] and name icontains "é"`],
    ['by name', () => `name = "${names[5]}" and not (name icontains "ü")`],
    ['by a role attribute that few have', () => 'anyOf(roleAttributes) = "a7" and name icontains "é"'],
    ['by nothing', () => 'true sort by name'],
  ])('stays where it is: %s', async (_what, filter) => {
    const { status, scans, names: found } = await list(filter())

    expect([status, scans]).toEqual([200, 0])
    expect(found.length).toBeGreaterThan(0)
  })
})
