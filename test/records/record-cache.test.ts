// The record cache: what it holds, and what it evicts when it is full.
import { beforeAll, describe, expect, it } from 'vitest'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { RecordCache } from '../../src/storage/records/record-cache.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

const SOME = 5
const MANY = 100

describe('cached records', () => {
  it('of a few services stay, however many identities are read', async () => {
    const few: string[] = []
    for (let at = 0; at < SOME; at++) {
      few.push(await manage.make('services', { name: `service ${at}`, encryptionRequired: true }))
    }
    const many: string[] = []
    for (let at = 0; at < MANY; at++) {
      many.push(await manage.make('identities', { name: `identity ${at}`, type: 'User', isAdmin: false }))
    }
    const context = world.system
    // Room for all services and for a fraction of the identities.
    const records = new RecordCache(world.controller.records, 60_000)
    // Cached ones need no database.
    const { db: _, ...withoutDatabase } = context
    const isCached = async (resource: AnyResource, id: string) => {
      try {
        return (await records.findById(withoutDatabase as typeof context, resource, id)) !== undefined
      } catch {
        return false
      }
    }

    for (const id of few) await records.findById(context, services, id)
    for (const id of many) await records.findById(context, identities, id)

    for (const id of few) expect(await isCached(services, id)).toBe(true)
    expect(await isCached(identities, many.at(-1) ?? '')).toBe(true)
    expect(await isCached(identities, many[0] ?? '')).toBe(false)
  })

  it('are all returned, although reading the others of a page evicts them', async () => {
    const ids: string[] = []
    for (let at = 0; at < MANY; at++) {
      ids.push(await manage.make('identities', { name: `of a page ${at}`, type: 'User', isAdmin: false }))
    }
    const context = world.system
    const rows = await context.db
      .selectFrom('identities')
      .select(['id', 'n'])
      .where('name', 'like', 'of a page %')
      .execute()
    const keys = rows.map(({ n }) => n)

    const byIds = new RecordCache(world.controller.records, 20_000)
    for (const id of ids.slice(0, SOME)) await byIds.findById(context, identities, id)
    const byKeys = new RecordCache(world.controller.records, 20_000)
    await byKeys.findByKeys(context, identities, keys.slice(0, SOME))

    expect((await byIds.findByIds(context, identities, ids)).map(({ id }) => id)).toEqual(ids)
    expect((await byKeys.findByKeys(context, identities, keys)).map(({ n }) => n)).toEqual(keys)
  })
})

describe('records that refer to others', () => {
  const authPolicyName = async (id: string) => (await manage.get(`/identities/${id}`)).authPolicy.name as string

  it('show their names as they are now, also in records that were not read before', async () => {
    const { primary, secondary } = await manage.get('/auth-policies/default')
    const authPolicyId = await manage.make('auth-policies', { name: 'first name', primary, secondary })
    const make = (name: string) => manage.make('identities', { name, type: 'User', isAdmin: false, authPolicyId })
    const [read, unread] = [await make('read before'), await make('not read before')]
    expect(await authPolicyName(read)).toBe('first name')

    await manage.change('PATCH', `/auth-policies/${authPolicyId}`, { name: 'second name' })

    expect(await authPolicyName(unread)).toBe('second name')
    expect(await authPolicyName(read)).toBe('second name')
  })
})

describe('a list by name', () => {
  const findNamed = async (name: string): Promise<string[]> => {
    const records = await manage.get(`/services?${new URLSearchParams({ filter: `name = "${name}"` })}`)
    return records.map(({ id }: { id: string }) => id)
  }
  const rename = (id: string, name: string) => manage.change('PATCH', `/services/${id}`, { name })

  it('finds the record that has the name now, whatever was cached under it', async () => {
    const [first, second] = [
      await manage.make('services', { name: 'first', encryptionRequired: true }),
      await manage.make('services', { name: 'second', encryptionRequired: true }),
    ]
    // Twice: a record is cached once it was read.
    for (let time = 0; time < 2; time++) {
      expect(await findNamed('first')).toEqual([first])
      expect(await findNamed('second')).toEqual([second])
    }

    await rename(first, 'third')
    expect(await findNamed('first')).toEqual([])
    await rename(second, 'first')
    for (let time = 0; time < 2; time++) {
      expect(await findNamed('first')).toEqual([second])
      expect(await findNamed('second')).toEqual([])
      expect(await findNamed('third')).toEqual([first])
    }
    await manage.change('DELETE', `/services/${second}`)

    expect(await findNamed('first')).toEqual([])
  })

  it('does not find evicted records in the cache', async () => {
    const ids: string[] = []
    for (let at = 0; at < MANY; at++) {
      ids.push(await manage.make('identities', { name: `named ${at}`, type: 'User', isAdmin: false }))
    }
    const records = new RecordCache(world.controller.records, 60_000)
    for (const id of ids) await records.findById(world.system, identities, id)

    expect(records.getByName(identities, `named ${MANY - 1}`)?.id).toBe(ids.at(-1))
    expect(records.getByName(identities, 'named 0')).toBeUndefined()
  })
})
