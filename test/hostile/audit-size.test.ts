// A client changes large records again and again: the audit stores what changed, and little of large values.
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ChainedRecord } from '../../src/storage/audit/audit-chain.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let admin: Management

const KIB = 1024
const PER_SIDE = 32 * KIB

beforeAll(async () => {
  admin = await managementOf(world)
})

async function newest(): Promise<ChainedRecord> {
  const query = world.controller.store.db.selectFrom('audit_records').selectAll().orderBy('n', 'desc')
  return query.executeTakeFirstOrThrow()
}
const sides = ({ before, after }: ChainedRecord) => [before, after].map((side) => side && JSON.parse(side))
const sizes = (record: ChainedRecord) =>
  Object.values(record).reduce<number>((sum, value) => sum + Buffer.byteLength(String(value ?? '')), 0)

async function makeConfig(data: Record<string, unknown>): Promise<string> {
  const configTypeId = await admin.make('config-types', { name: `type ${Math.random()}` })
  return admin.make('configs', { name: `config ${Math.random()}`, configTypeId, data })
}

describe('the audit record of a changed record', () => {
  it('holds the keys that changed, at any depth, and not those around them', async () => {
    const around = { same: 'x'.repeat(10 * KIB), list: [1, 2, 3] }
    const id = await makeConfig({ ...around, inner: { ...around, port: 1, gone: true }, host: 'a' })

    await admin.change('PATCH', `/configs/${id}`, {
      data: { ...around, inner: { ...around, port: 2, new: null }, host: 'a' },
    })

    expect(sides(await newest())).toEqual([
      { data: { inner: { port: 1, gone: true } } },
      { data: { inner: { port: 2, new: null } } },
    ])
  })

  it('holds the tags that changed', async () => {
    const tags = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`tag ${at}`, 'x'.repeat(50)]))
    const id = await admin.make('services', { name: 'tagged', encryptionRequired: true, tags })

    await admin.change('PATCH', `/services/${id}`, { tags: { ...tags, 'tag 7': 'other' } })

    const [before, after] = sides(await newest())
    expect(before).toEqual({ tags: { 'tag 7': 'x'.repeat(50) } })
    expect(after.tags['tag 7']).toBe('other')
  })

  it('holds lists as wholes', async () => {
    const id = await admin.make('services', { name: 'listed', encryptionRequired: true, roleAttributes: ['a', 'b'] })

    await admin.change('PATCH', `/services/${id}`, { roleAttributes: ['b', 'c'] })

    expect(sides(await newest())).toEqual([{ roleAttributes: ['a', 'b'] }, { roleAttributes: ['b', 'c'] }])
  })

  it('says that a secret changed, and does not hold it', async () => {
    const identityId = await admin.make('identities', { name: 'with a password', type: 'Device', isAdmin: false })
    const password = 'correct horse battery'
    const id = await admin.make('authenticators', { method: 'updb', identityId, username: 'jane.doe', password })

    await admin.change('PATCH', `/authenticators/${id}`, { username: 'jane.doe', password: 'another horse battery' })

    const records = await world.controller.store.db
      .selectFrom('audit_records')
      .selectAll()
      .where('entityId', '=', id)
      .where('operation', '=', 'update')
      .execute()
    expect(records.map(sides)).toEqual([[{ passwordHash: '***' }, { passwordHash: '***' }]])
  })
})

describe('an audit record stays small', () => {
  const large = { text: 'é'.repeat(400 * KIB) }

  it('for a large record that is made, changed and deleted', async () => {
    const id = await makeConfig(large)
    const creation = await newest()
    await admin.change('PATCH', `/configs/${id}`, { data: { text: `${large.text}!`, other: 1 } })
    const changed = await newest()
    await admin.change('DELETE', `/configs/${id}`)
    const deleted = await newest()

    for (const record of [creation, changed, deleted]) expect(sizes(record)).toBeLessThan(2 * PER_SIDE)
    expect([creation, changed, deleted].map(({ operation }) => operation)).toEqual(['create', 'update', 'delete'])
  })

  it('and says of what it leaves out how long it is and how to recognise it', async () => {
    await makeConfig(large)

    const [, after] = sides(await newest())

    const text = JSON.stringify(large)
    const sha256 = createHash('sha256').update(text).digest('hex')
    expect(after.data).toEqual({ omitted: { bytes: Buffer.byteLength(text), sha256 } })
    expect(after.name).toMatch(/^config/)
  })

  it('for whatever an identity with an endless name does', async () => {
    const name = 'n'.repeat(300 * KIB)
    const { token } = await world.signIn({ name, isAdmin: true })
    await world.send({
      method: 'POST',
      path: '/edge/management/v1/services',
      token,
      body: { name: 'by a long name', encryptionRequired: true },
    })

    const record = await newest()

    expect(record.entityName).toBe('by a long name')
    expect(sizes(record)).toBeLessThan(4 * KIB)
  })

  it('for a record with an endless name, whose chain stays whole', async () => {
    // The cut falls into a surrogate pair.
    await admin.make('services', { name: `x${'\u{1f511}'.repeat(50 * KIB)}`, encryptionRequired: true }).catch(() => {})

    expect(sizes(await newest())).toBeLessThan(2 * PER_SIDE)
    expect((await admin.get('/controller/audit/verify')).findings).toEqual([])
  })
})
