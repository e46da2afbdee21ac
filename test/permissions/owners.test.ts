// Owners of records: those who may act on records with a role attribute, or with a tag of one value.
import { beforeAll, describe, expect, it } from 'vitest'
import { MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { watchEvents } from '../world/event-stream.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let sequence = 0

interface Owned {
  readonly own: string
  readonly other: string
}

const scopes = {
  'a role attribute': {
    word: 'service:#web',
    mine: { roleAttributes: ['web'] },
    foreign: { roleAttributes: ['mail'] },
    both: { roleAttributes: ['mail', 'web'] },
  },
  'a tag': {
    word: 'service:team=web',
    mine: { tags: { team: 'web' } },
    foreign: { tags: { team: 'mail' } },
    both: { tags: { team: 'web', more: 1 } },
  },
} as const

beforeAll(async () => {
  people = await People.in(world)
})

const newService = (values: object) => ({ name: `service ${++sequence}`, encryptionRequired: true, ...values })
const reason = ({ status, body }: TestResponse) => [status, body.error?.cause?.code]
const idsOf = ({ body }: TestResponse): string[] => body.data.map(({ id }: { id: string }) => id)

describe.each(Object.entries(scopes))('an owner of services by %s', (_name, { word, mine, foreign, both }) => {
  let token: string
  let owned: Owned
  const ask = (method: string, path: string, body?: unknown) =>
    world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })

  beforeAll(async () => {
    token = (await world.signIn({ name: `owner ${++sequence}`, permissions: [word] })).token
    owned = {
      own: (await people.manage('POST', '/services', newService(mine))).id,
      other: (await people.manage('POST', '/services', newService(foreign))).id,
    }
  })

  it('lists these services, in pages, as a stream, and counted', async () => {
    const page = await ask('GET', '/services')
    const stream = await ask('GET', '/services?limit=-1')
    const filtered = await ask('GET', `/services?filter=id="${owned.other}"`)

    expect(idsOf(page)).toContain(owned.own)
    expect(idsOf(page)).not.toContain(owned.other)
    expect(idsOf(stream)).toEqual(idsOf(page))
    expect(page.body.meta.pagination.totalCount).toBe(idsOf(page).length)
    expect([filtered.body.data, filtered.body.meta.pagination.totalCount]).toEqual([[], 0])
  })

  it('lists them among those of another record', async () => {
    const { id } = await people.manage('POST', '/service-policies', {
      ...{ name: `policy ${++sequence}`, type: 'Dial', semantic: 'AnyOf' },
      serviceRoles: [`@${owned.own}`, `@${owned.other}`],
    })

    expect(idsOf(await ask('GET', `/service-policies/${id}/services`))).toEqual([owned.own])
  })

  it('does not find the others, whatever it does with them', async () => {
    const requests: readonly [string, object?][] = [['GET'], ['PUT', newService(mine)], ['PATCH', mine], ['DELETE']]
    for (const [method, body] of requests) {
      expect((await ask(method, `/services/${owned.other}`, body)).status).toBe(404)
      expect((await ask(method, '/services/no-such-service', body)).status).toBe(404)
    }
  })

  it('creates services that it owns, and no others', async () => {
    const created = await ask('POST', '/services', newService(mine))
    const more = await ask('POST', '/services', newService(both))

    expect([created.status, more.status]).toEqual([201, 201])
    expect(reason(await ask('POST', '/services', newService(foreign)))).toEqual([401, 'PERMISSION_DENIED'])
    expect(reason(await ask('POST', '/services', newService({})))).toEqual([401, 'PERMISSION_DENIED'])
  })

  it('changes and deletes them, and keeps that by which it owns them', async () => {
    const { id } = (await ask('POST', '/services', newService(mine))).body.data

    expect((await ask('PATCH', `/services/${id}`, both)).status).toBe(200)
    expect(reason(await ask('PATCH', `/services/${id}`, foreign))).toEqual([401, 'PERMISSION_DENIED'])
    expect(reason(await ask('PUT', `/services/${id}`, newService({})))).toEqual([401, 'PERMISSION_DENIED'])
    expect((await ask('PATCH', `/services/${id}`, { maxIdleTimeMillis: 1_000 })).status).toBe(200)
    expect((await ask('DELETE', `/services/${id}`)).status).toBe(200)
  })

  it('filters by what it reads alone', async () => {
    const { body } = await ask('GET', '/services?filter=anyOf(configs.name)="secret"')

    expect(body.error.code).toBe('INVALID_FILTER')
  })
})

describe('the audit', () => {
  it('shows a holder what it says of records that the holder reads', async () => {
    const { token } = await world.signIn({ name: `reader ${++sequence}`, permissions: ['service.read'] })
    await people.manage('POST', '/services', newService({}))
    await people.identity()
    const ask = (path: string) => world.send({ method: 'GET', path: MANAGEMENT + path, token })
    const all = (await people.manage('GET', '/controller/audit?limit=-1')) as { id: number; resource: string }[]
    const identity = all.find(({ resource }) => resource === 'identities')
    const service = all.find(({ resource }) => resource === 'services')

    const { body } = await ask('/controller/audit')

    expect(new Set(body.data.map(({ resource }: { resource: string }) => resource))).toEqual(new Set(['services']))
    expect(body.meta.pagination.totalCount).toBe(all.filter(({ resource }) => resource === 'services').length)
    expect((await ask(`/controller/audit/${service?.id}`)).status).toBe(200)
    expect((await ask(`/controller/audit/${identity?.id}`)).status).toBe(404)
  })
})

describe('the stream of events', () => {
  it('sends an owner the events of its records alone', async () => {
    const { token } = await world.signIn({ name: `watcher ${++sequence}`, permissions: ['service:#web'] })
    const watcher = await watchEvents(await world.listen(), token)
    await expect.poll(() => watcher.cursor).not.toBe('')
    const listChanges = () => watcher.events.map(({ data }) => [data.audit.operation, data.audit.entityId])
    const other = (await people.manage('POST', '/services', newService({ roleAttributes: ['mail'] }))).id
    await people.manage('PATCH', `/services/${other}`, { maxIdleTimeMillis: 1_000 })
    const mine = (await people.manage('POST', '/services', newService({ roleAttributes: ['web'] }))).id
    await people.manage('PATCH', `/services/${mine}`, { maxIdleTimeMillis: 1_000 })
    await expect.poll(listChanges).toEqual([
      ['create', mine],
      ['update', mine],
    ])
    await people.manage('DELETE', `/services/${other}`)
    await people.manage('DELETE', `/services/${mine}`)

    await expect.poll(() => listChanges().slice(2)).toEqual([['delete', mine]])
    await watcher.close()
  })
})
