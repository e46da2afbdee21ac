// The terminators in memory follow those that are stored, and are the same after a restart.
import { beforeAll, describe, expect, it } from 'vitest'
import { terminators } from '../../src/definitions/resources/terminators.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

const directory = () => world.controller.fabric.terminators
const idsOf = (serviceId: string, instanceId = '') =>
  directory()
    .listOfService(serviceId, instanceId)
    .map(({ id }) => id)

async function makePlace() {
  const service = await manage.make('services', { name: newName('service'), encryptionRequired: true })
  const router = await manage.make('edge-routers', { name: newName('router') })
  return { service, router, binding: 'transport', address: 'tcp:localhost:8080' }
}

describe('the terminators in memory', () => {
  it('are those of a service, each with what a circuit needs', async () => {
    const place = await makePlace()
    const id = await manage.make('terminators', { ...place, cost: 7, precedence: 'required' })
    expect(directory().listOfService(place.service, '')).toEqual([
      {
        id,
        serviceId: place.service,
        routerId: place.router,
        binding: 'transport',
        address: 'tcp:localhost:8080',
        cost: 7,
        precedence: 'required',
        instanceId: '',
        hostId: '',
        sessionId: '',
        peerData: new Map(),
        isSystem: false,
        createdAt: world.clock.now(),
      },
    ])
    expect([...directory().listOfRouter(place.router)]).toEqual(directory().listOfService(place.service, ''))
  })

  it('are found by exactly the instance id that they have', async () => {
    const place = await makePlace()
    const plain = await manage.make('terminators', place)
    const addressed = await manage.make('terminators', { ...place, identity: 'printer' })
    expect(idsOf(place.service)).toEqual([plain])
    expect(idsOf(place.service, 'printer')).toEqual([addressed])
    expect(idsOf(place.service, 'print')).toEqual([])
  })

  it('follow a change of their cost and of their router', async () => {
    const place = await makePlace()
    const id = await manage.make('terminators', place)
    const router = await manage.make('edge-routers', { name: newName('router') })
    await manage.change('PATCH', `/terminators/${id}`, { cost: 9, router })
    expect(directory().get(id)).toMatchObject({ cost: 9, routerId: router })
    expect([...directory().listOfRouter(place.router)]).toEqual([])
    expect([...directory().listOfRouter(router)]).toHaveLength(1)
  })

  it.each(['services', 'edge-routers', 'terminators'] as const)('go with the deleted one of %s', async (plural) => {
    const place = await makePlace()
    const id = await manage.make('terminators', place)
    const deletedId = { services: place.service, 'edge-routers': place.router, terminators: id }[plural]
    await manage.change('DELETE', `/${plural}/${deletedId}`)
    expect(idsOf(place.service)).toEqual([])
    expect(directory().get(id)).toBeUndefined()
    expect([...directory().listOfRouter(place.router)]).toEqual([])
  })

  it('are the same after they were read from rows, with the bytes that a host tells its clients', async () => {
    const { service: serviceId, router: routerId } = await makePlace()
    const key = Buffer.alloc(32, 7)
    const hosted = { serviceId, routerId, binding: 'edge', address: 'hosted', hostId: 'host', isSystem: true }
    const peerData = { '1003': key.toString('base64') }
    const record = newEntity(world.system, terminators, { ...hosted, peerData })
    await world.system.write((tx) => world.controller.entities.insert(tx, terminators, record))
    const followed = directory().get(record.id)
    expect(followed).toMatchObject({ hostId: 'host', isSystem: true, peerData: new Map([[1003, key]]) })
    await directory().rebuild(world.controller.store.db)
    expect(directory().get(record.id)).toEqual(followed)
  })
})
