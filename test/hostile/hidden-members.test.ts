// A caller who may list records cannot find out, by filters or by their order, what the list does not show.
import { beforeAll, describe, expect, it } from 'vitest'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { terminators } from '../../src/definitions/resources/terminators.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let service: string
let client: { id: string; token: string }
const { makeType, makeConfig, makeService, grant, asClient } = serviceMakers(
  () => world,
  () => manage,
)

const ADDRESS = 'tcp:10.1.2.3:5432'
const HOST = 'the-host-behind-it'

beforeAll(async () => {
  manage = await managementOf(world)
  const type = await makeType()
  service = await makeService({ configs: [await makeConfig(type.id, { port: 1 })] })
  client = await world.signIn({ roleAttributes: ['clients'] })
  await grant('clients', service)
  const router = await manage.make('edge-routers', { name: newName('router') })
  await world.system.write(async (tx) => {
    await world.controller.entities.update(tx, edgeRouters, await get(tx, edgeRouters, router), {
      isVerified: true,
      fingerprint: 'abcdef',
    })
    const values = { serviceId: service, routerId: router, address: ADDRESS, binding: 'edge', hostId: HOST }
    await world.controller.entities.insert(tx, terminators, newEntity(tx, terminators, values as never))
  })
})

const ask = (path: string, name: 'filter' | 'sort', text: string) =>
  asClient(client.token, `${path}?${name}=${encodeURIComponent(text)}`)

describe('a client', () => {
  const hidden = [
    ['the address of a terminator', '/terminators', 'address', `address = "${ADDRESS}"`],
    ['part of the address of a terminator', '/terminators', 'address', 'address contains "10.1"'],
    ['the host of a terminator', '/terminators', 'hostId', `hostId = "${HOST}"`],
    ['the binding of a terminator', '/terminators', 'binding', 'binding = "edge"'],
    ['whether a router made a terminator', '/terminators', 'isSystem', 'isSystem = true'],
    ['the fingerprint of a router', '/current-identity/edge-routers', 'fingerprint', 'fingerprint = "abcdef"'],
    ['the role attributes of a router', '/current-identity/edge-routers', '', 'anyOf(roleAttributes) = "a"'],
  ] as const

  it.each(hidden)('cannot find out %s', async (_what, path, symbol, filter) => {
    const where = path === '/terminators' ? `/services/${service}${path}` : path

    const filtered = await ask(where, 'filter', filter)
    const ordered = symbol ? await ask(where, 'filter', `true sort by ${symbol}`) : filtered
    const sorted = symbol ? await ask(where, 'sort', symbol) : undefined

    expect([filtered.status, ordered.status]).toEqual([400, 400])
    expect(filtered.body.error.code).toBe('INVALID_FILTER')
    if (sorted) expect(sorted.body.error.code).toBe('INVALID_SORT_IDENTIFIER')
  })

  it.each(['name contains "config"', 'tags.a = "b"', 'type = "x"', 'createdAt > datetime(2020-01-01T00:00:00Z)'])(
    'cannot ask about the configs of a service: %s',
    async (inner) => {
      const emptiness = await ask('/services', 'filter', `isEmpty(from configs where ${inner})`)
      const count = await ask('/services', 'filter', `count(from configs where ${inner}) > 0`)

      expect([emptiness.body.error?.code, count.body.error?.code]).toEqual(['INVALID_FILTER', 'INVALID_FILTER'])
    },
  )

  it('can ask about what it is shown', async () => {
    const responses = [
      await ask('/services', 'filter', 'count(configs) = 1 and isEmpty(from configs where id = "none") sort by name'),
      await ask(`/services/${service}/terminators`, 'filter', 'service.name contains "service" and instanceId = ""'),
      await ask('/current-identity/edge-routers', 'filter', 'cost = 0 and not disabled sort by name desc'),
      await ask('/controllers', 'filter', 'fingerprint != null sort by name'),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(responses[0]?.body.data).toHaveLength(1)
    expect(responses[1]?.body.data).toHaveLength(1)
  })
})
