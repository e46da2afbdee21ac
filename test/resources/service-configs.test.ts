// The configuration of services: which of it is shown, and what single identities have in its place.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
const { makeType, makeConfig, makeService, grant, asClient } = serviceMakers(
  () => world,
  () => manage,
)

beforeAll(async () => {
  manage = await managementOf(world)
})

describe('the configuration of a service', () => {
  it('is that of the types asked for, by id or name, keyed by name', async () => {
    const [type, other] = [await makeType(), await makeType()]
    const configs = [await makeConfig(type.id, { port: 1 }), await makeConfig(other.id, { port: 2 })]
    const id = await makeService({ configs })
    const config = async (query: string) => (await manage.get(`/services/${id}${query}`)).config
    const both = { [type.name]: { port: 1 }, [other.name]: { port: 2 } }

    expect(await config('')).toEqual({})
    expect(await config(`?configTypes=${type.id}`)).toEqual({ [type.name]: { port: 1 } })
    expect(await config(`?configTypes=${encodeURIComponent(type.name)}`)).toEqual({ [type.name]: { port: 1 } })
    expect(await config(`?configTypes=${type.id}&configTypes=${other.id}`)).toEqual(both)
    expect(await config(`?configTypes=${type.id},${other.id}`)).toEqual(both)
    expect(await config('?configTypes=all')).toEqual(both)
    expect(await config('?configTypes=nope')).toEqual({})
    expect((await manage.get(`/services/${id}`)).configs.sort()).toEqual([...configs].sort())
  })

  it('is empty in lists where no type is asked for', async () => {
    const id = await makeService()
    const filter = encodeURIComponent(`id = "${id}"`)

    const [service] = await manage.get(`/services?filter=${filter}`)

    expect(service.config).toEqual({})
  })

  it('is what an identity has in place of it, and besides it', async () => {
    const [type, other] = [await makeType(), await makeType()]
    const own = await makeConfig(type.id, { port: 1 })
    const [instead, beside] = [await makeConfig(type.id, { port: 9 }), await makeConfig(other.id, { extra: true })]
    const service = await makeService({ configs: [own] })
    const client = await world.signIn({ roleAttributes: [service] })
    await grant(service, service)
    const readConfig = async () =>
      (await asClient(client.token, `/services/${service}?configTypes=all`)).body.data.config
    const path = `/identities/${client.id}/service-configs`

    expect(await readConfig()).toEqual({ [type.name]: { port: 1 } })
    await manage.change('POST', path, [
      { serviceId: service, configId: instead },
      { serviceId: service, configId: beside },
    ])
    expect(await readConfig()).toEqual({ [type.name]: { port: 9 }, [other.name]: { extra: true } })
    expect((await manage.get(`/services/${service}?configTypes=all`)).config).toEqual({ [type.name]: { port: 1 } })
    await manage.change('DELETE', path, [{ serviceId: service, configId: instead }])
    expect(await readConfig()).toEqual({ [type.name]: { port: 1 }, [other.name]: { extra: true } })
  })
})

describe('the configs of an identity', () => {
  async function makeClient() {
    const type = await makeType()
    const [one, two] = [await makeConfig(type.id, {}), await makeConfig(type.id, {})]
    const service = await makeService()
    const identity = await manage.make('identities', { name: newName('identity'), type: 'User', isAdmin: false })
    return { one, two, service, identity, path: `/identities/${identity}/service-configs` }
  }

  it('are listed whole, with what they refer to', async () => {
    const { one, service, path } = await makeClient()

    await manage.change('POST', path, [{ serviceId: service, configId: one }])

    const { body } = await manage.call('GET', path)
    expect(body.data).toEqual([
      {
        serviceId: service,
        service: expect.objectContaining({ entity: 'services', id: service }),
        configId: one,
        config: expect.objectContaining({ entity: 'configs', id: one }),
      },
    ])
    expect(body.meta.pagination).toEqual({ limit: 1, offset: 0, totalCount: 1 })
  })

  it('are one of each type for a service: a second one takes the place of the first', async () => {
    const { one, two, service, path } = await makeClient()
    await manage.change('POST', path, [{ serviceId: service, configId: one }])

    await manage.change('POST', path, [{ serviceId: service, configId: two }])

    expect((await manage.get(path)).map(({ configId }: { configId: string }) => configId)).toEqual([two])
  })

  it('are taken away by the type of the config that is named', async () => {
    const { one, two, service, path } = await makeClient()
    await manage.change('POST', path, [{ serviceId: service, configId: two }])

    await manage.change('DELETE', path, [{ serviceId: service, configId: one }])
    await manage.change('DELETE', path, [{ serviceId: service, configId: one }])
    await manage.change('DELETE', path)

    expect(await manage.get(path)).toEqual([])
  })

  it('are all there, or none of them, where one of what is named does not exist', async () => {
    const { one, service, path } = await makeClient()
    const good = { serviceId: service, configId: one }

    expect(await manage.refusal('POST', path, [good, { ...good, configId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('POST', path, [good, { ...good, serviceId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('POST', '/identities/nope/service-configs', [good])).toMatchObject({ status: 404 })
    expect(await manage.refusal('DELETE', path, [{ ...good, configId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('GET', '/identities/nope/service-configs')).toMatchObject({ status: 404 })
    expect(await manage.get(path)).toEqual([])
  })

  it.each([
    ['no list', { serviceId: 'a', configId: 'b' }, 'COULD_NOT_PARSE_BODY', undefined],
    ['half a pair', [{ serviceId: 'a' }], 'COULD_NOT_VALIDATE', '0.configId'],
    ['a pair of something else', [{ serviceId: 'a', configId: 7 }], 'COULD_NOT_PARSE_BODY', '0.configId'],
    ['an unknown member', [{ serviceId: 'a', configId: 'b', x: 1 }], 'COULD_NOT_VALIDATE', '0.x'],
    ['no objects', ['a'], 'COULD_NOT_PARSE_BODY', undefined],
    ['too many', Array.from({ length: 1001 }, () => ({})), 'COULD_NOT_VALIDATE', 'body'],
  ])('refuse %s', async (_what, body, code, field) => {
    const { path } = await makeClient()

    const refused = await manage.refusal('POST', path, body)

    expect(refused).toMatchObject({ status: 400, code, ...(field ? { field } : {}) })
  })

  it('keep their config from being deleted, and go with their service or identity', async () => {
    const { one, two, service, identity, path } = await makeClient()
    const other = await makeService()
    await manage.change('POST', path, [
      { serviceId: service, configId: one },
      { serviceId: other, configId: two },
    ])

    const refused = await manage.refusal('DELETE', `/configs/${one}`)
    await manage.change('DELETE', `/services/${service}`)
    await manage.change('DELETE', `/configs/${one}`)
    await manage.change('DELETE', `/identities/${identity}`)
    await manage.change('DELETE', `/configs/${two}`)

    expect(refused).toMatchObject({ status: 409, code: 'CAN_NOT_DELETE_REFERENCED_ENTITY' })
  })

  it('tell the identity that its services changed', async () => {
    const { one, service } = await makeClient()
    const role = newName('role')
    const client = await world.signIn({ roleAttributes: [role] })
    await grant(role, service)
    const lastChange = async () =>
      (await asClient(client.token, '/current-api-session/service-updates')).body.data.lastChangeAt
    await lastChange()
    world.clock.advance(1000)

    await manage.change('POST', `/identities/${client.id}/service-configs`, [{ serviceId: service, configId: one }])
    expect(await lastChange()).toBe(new Date(world.clock.now()).toISOString())
    world.clock.advance(1000)
    await manage.change('PATCH', `/configs/${one}`, { data: { changed: true } })

    expect(await lastChange()).toBe(new Date(world.clock.now()).toISOString())
  })
})
