// Edge routers that dial and host services themselves: their identities, and the policies that let these use them.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = () => `router ${++sequence}`
const makeEdgeRouter = (body: object = {}) => manage.make('edge-routers', { name: newName(), ...body })

describe('an edge router that tunnels', () => {
  const makeTunneler = (body: object = {}) => makeEdgeRouter({ isTunnelerEnabled: true, ...body })

  it('has an identity of its id and name, and a policy that lets it use itself', async () => {
    const name = newName()

    const id = await makeTunneler({ name })

    expect(await manage.get(`/identities/${id}`)).toMatchObject({
      name,
      typeId: 'Router',
      isAdmin: false,
      authPolicyId: 'default',
    })
    expect(await manage.get(`/edge-router-policies/${id}`)).toMatchObject({
      name: `edge-router-${id}-system`,
      semantic: 'AnyOf',
      isSystem: true,
      edgeRouterRoles: [`@${id}`],
      edgeRouterRolesDisplay: [{ name: `@${name}`, role: `@${id}` }],
      identityRoles: [`@${id}`],
    })
    expect(await manage.names(`/edge-routers/${id}/identities`)).toEqual([name])
    expect(await manage.names(`/identities/${id}/edge-routers`)).toEqual([name])
  })

  it('gets both when tunneling is switched on, and loses both when it is switched off', async () => {
    const id = await makeEdgeRouter()

    await manage.change('PATCH', `/edge-routers/${id}`, { isTunnelerEnabled: true })
    const whileOn = (await manage.call('GET', `/identities/${id}`)).status
    await manage.change('PATCH', `/edge-routers/${id}`, { isTunnelerEnabled: false })

    expect(whileOn).toBe(200)
    expect(await manage.refusal('GET', `/identities/${id}`)).toMatchObject({ status: 404 })
    expect(await manage.refusal('GET', `/edge-router-policies/${id}`)).toMatchObject({ status: 404 })
  })

  it('loses both by a replacement that does not say that it tunnels', async () => {
    const name = newName()
    const id = await makeTunneler({ name })

    await manage.change('PUT', `/edge-routers/${id}`, { name })

    expect((await manage.get(`/edge-routers/${id}`)).isTunnelerEnabled).toBe(false)
    expect(await manage.refusal('GET', `/identities/${id}`)).toMatchObject({ status: 404 })
  })

  it('takes both along when it is deleted', async () => {
    const id = await makeTunneler()

    await manage.change('DELETE', `/edge-routers/${id}`)

    expect(await manage.refusal('GET', `/identities/${id}`)).toMatchObject({ status: 404 })
    expect(await manage.refusal('GET', `/edge-router-policies/${id}`)).toMatchObject({ status: 404 })
  })

  it('gives its identity its new name', async () => {
    const id = await makeTunneler()
    const name = newName()

    await manage.change('PATCH', `/edge-routers/${id}`, { name })

    expect((await manage.get(`/identities/${id}`)).name).toBe(name)
    expect((await manage.get(`/edge-router-policies/${id}`)).identityRolesDisplay).toEqual([
      { name: `@${name}`, role: `@${id}` },
    ])
  })

  it('is not made where its name is that of an identity, and nothing of it stays', async () => {
    const name = newName()
    await manage.make('identities', { name, type: 'Device', isAdmin: false })

    const refused = await manage.refusal('POST', '/edge-routers', { name, isTunnelerEnabled: true })
    const id = await makeEdgeRouter({ name })
    const later = await manage.refusal('PATCH', `/edge-routers/${id}`, { isTunnelerEnabled: true })

    expect(refused).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name', value: name })
    expect(later).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name', value: name })
    expect((await manage.get(`/edge-routers/${id}`)).isTunnelerEnabled).toBe(false)
  })

  it('does not lend its identity to administrators', async () => {
    const id = await makeTunneler()
    const identity = { name: 'other', type: 'Router', isAdmin: false }
    const { name } = await manage.get(`/identities/${id}`)

    const renamed = await manage.refusal('PATCH', `/identities/${id}`, { name: 'other' })
    const replaced = await manage.refusal('PUT', `/identities/${id}`, identity)
    const retyped = await manage.refusal('PUT', `/identities/${id}`, { ...identity, name, type: 'Device' })
    const deleted = await manage.refusal('DELETE', `/identities/${id}`)

    expect(renamed).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name' })
    expect(replaced).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name' })
    expect(retyped).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'typeId' })
    expect(deleted).toMatchObject({ status: 400, code: 'ENTITY_CAN_NOT_BE_DELETED' })
  })

  it('can be renamed and deleted even if its identity is gone', async () => {
    const id = await makeTunneler()
    await world.system.write((tx) => tx.db.deleteFrom('identities').where('id', '=', id).execute())

    await manage.change('PATCH', `/edge-routers/${id}`, { name: newName() })
    await manage.change('DELETE', `/edge-routers/${id}`)

    expect(await manage.refusal('GET', `/edge-routers/${id}`)).toMatchObject({ status: 404 })
  })

  it('lets its identity have attributes and be found by policies', async () => {
    const id = await makeTunneler()

    await manage.change('PATCH', `/identities/${id}`, { roleAttributes: ['tunnelers'] })

    expect((await manage.get(`/identities/${id}`)).roleAttributes).toEqual(['tunnelers'])
  })

  it('keeps its policy from being changed', async () => {
    const id = await makeTunneler()
    const path = `/edge-router-policies/${id}`
    const body = { name: 'mine', semantic: 'AnyOf' }

    expect(await manage.refusal('PATCH', path, { name: 'mine' })).toMatchObject({
      status: 400,
      code: 'ENTITY_CAN_NOT_BE_UPDATED',
    })
    expect(await manage.refusal('PUT', path, body)).toMatchObject({ status: 400, code: 'ENTITY_CAN_NOT_BE_UPDATED' })
    expect(await manage.refusal('DELETE', path)).toMatchObject({ status: 400, code: 'ENTITY_CAN_NOT_BE_DELETED' })
  })
})
