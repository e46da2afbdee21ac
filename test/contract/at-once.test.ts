// Concurrent requests have the effects of requests one after the other, for every resource.
import { beforeAll, describe, expect, it } from 'vitest'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { exampleBody } from '../world/examples.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

const AT_ONCE = 8
const atOnce = <T>(request: (at: number) => Promise<T>) =>
  Promise.all(Array.from({ length: AT_ONCE }, (_, at) => request(at)))
const statuses = (responses: readonly { status: number }[]) => responses.map(({ status }) => status).sort()
const oneOf = (status: number, others: number) => [status, ...Array<number>(AT_ONCE - 1).fill(others)].sort()

const having = (...verbs: AnyResource['verbs']) =>
  (resources as readonly AnyResource[])
    .filter((resource) => ['create', ...verbs].every((verb) => resource.verbs.includes(verb as 'create')))
    .map((resource) => [resource.plural, resource] as const)

describe.each(having().filter(([, { fields }]) => 'name' in fields))('%s', (plural, resource) => {
  it('are made once by a name, however many try', async () => {
    const body = await exampleBody(world, resource, newName(plural))

    const responses = await atOnce(() => manage.call('POST', toCollectionPath(resource), body))

    expect(statuses(responses)).toEqual(oneOf(201, 400))
  })
})

describe.each(having('delete'))('%s', (plural, resource) => {
  it('are deleted once, however many try', async () => {
    const id = await manage.make(plural, await exampleBody(world, resource, newName(plural)))

    const responses = await atOnce(() => manage.call('DELETE', `${toCollectionPath(resource)}/${id}`))

    expect(statuses(responses)).toEqual(oneOf(200, 404))
  })
})

describe.each(having('patch').filter(([, { fields }]) => 'name' in fields))('%s', (plural, resource) => {
  it('keep what each of several patches says, as long as they change different members', async () => {
    const id = await manage.make(plural, await exampleBody(world, resource, newName(plural)))
    const [name, tags] = [newName(plural), { patched: 'at once' }]

    const responses = await Promise.all([
      manage.call('PATCH', `${toCollectionPath(resource)}/${id}`, { name }),
      manage.call('PATCH', `${toCollectionPath(resource)}/${id}`, { tags }),
    ])

    expect(statuses(responses)).toEqual([200, 200])
    expect(await manage.get(`${toCollectionPath(resource)}/${id}`)).toMatchObject({ name, tags })
  })
})

interface Naming {
  readonly plural: string
  readonly namedBy: string
  readonly body: (id: string, router: string) => Record<string, unknown>
}

const namings: readonly Naming[] = [
  { plural: 'configs', namedBy: 'services', body: (id) => ({ encryptionRequired: true, configs: [id] }) },
  { plural: 'config-types', namedBy: 'configs', body: (id) => ({ configTypeId: id, data: {} }) },
  {
    plural: 'identities',
    namedBy: 'edge-router-policies',
    body: (id) => ({ semantic: 'AnyOf', identityRoles: [`@${id}`] }),
  },
  {
    plural: 'services',
    namedBy: 'terminators',
    body: (id, router) => ({ service: id, router, binding: 'transport', address: 'tcp:localhost:1' }),
  },
]

describe.each(namings)('$plural that go while $namedBy name them', ({ plural, namedBy, body }) => {
  const resourceCalled = (name: string) =>
    (resources as readonly AnyResource[]).find((each) => each.plural === name) as AnyResource

  it('are there, or are named by nothing', async () => {
    const router = await manage.make('routers', { name: newName('router') })
    for (let round = 0; round < 5; round++) {
      const id = await manage.make(plural, await exampleBody(world, resourceCalled(plural), newName(plural)))
      const name = 'name' in resourceCalled(namedBy).fields ? { name: newName(namedBy) } : {}

      const [made, deleted] = await Promise.all([
        manage.call('POST', `/${namedBy}`, { ...body(id, router), ...name }),
        manage.call('DELETE', `/${plural}/${id}`),
      ])

      const isThere = (await manage.call('GET', `/${plural}/${id}`)).status === 200
      expect(deleted.status).toBe(isThere ? 409 : 200)
      if (made.status !== 201) continue
      const record = await manage.call('GET', `/${namedBy}/${made.body.data.id}`)
      expect(record.text.includes(id)).toBe(isThere)
    }
  })
})
