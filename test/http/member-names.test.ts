// Names of members as clients of the peer write them: in any case, at any depth, but never in what is free.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let token: string

beforeAll(async () => {
  manage = await managementOf(world)
  token = await world.admin()
})

const send = (method: string, path: string, body: unknown): Promise<TestResponse> =>
  world.send({ method, path: MANAGEMENT + path, headers: { 'zt-session': token }, body })

describe('in the dialect of the peer, a member', () => {
  it('of a nested object counts in any case', async () => {
    const body = {
      Name: 'os of a client in Go',
      TYPEID: 'OS',
      operatingSystems: [{ Type: 'Linux', Versions: ['>=5.0.0'] }],
    }

    const { status, body: response } = await send('POST', '/posture-checks', body)

    expect(status).toBe(201)
    expect(await manage.get(`/posture-checks/${response.data.id}`)).toMatchObject({
      name: 'os of a client in Go',
      typeId: 'OS',
      operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0'] }],
    })
  })

  it('of a structured member counts in any case, in a replacement and in a patch', async () => {
    const { id } = (
      await send('POST', '/posture-checks', {
        name: 'process of a client in Go',
        typeId: 'PROCESS',
        Process: { OsType: 'Linux', Path: '/bin/a' },
      })
    ).body.data

    await send('PATCH', `/posture-checks/${id}`, { TypeId: 'PROCESS', Process: { PATH: '/bin/b' } })

    expect((await manage.get(`/posture-checks/${id}`)).process).toMatchObject({ osType: 'Linux', path: '/bin/b' })
  })

  it('that is written exactly wins over one that is not', async () => {
    const { body } = await send('POST', '/services', {
      Name: 'wrong',
      name: 'exact',
      NAME: 'wrong',
      encryptionRequired: true,
    })

    expect((await manage.get(`/services/${body.data.id}`)).name).toBe('exact')
  })

  it('of tags, or of the data of a config, stays as it is', async () => {
    const schema = { type: 'object', properties: { port: { type: 'integer' } }, additionalProperties: true }
    const configTypeId = (await send('POST', '/config-types', { Name: 'cased', Schema: schema })).body.data.id
    const data = { Port: 'text, because it is another member', Nested: { NAME: 1, name: 2 } }
    const creation = await send('POST', '/configs', {
      Name: 'cased',
      configTypeId,
      Data: data,
      Tags: { Id: 1, NAME: 'x' },
    })

    expect(await manage.get(`/configs/${creation.body.data.id}`)).toMatchObject({ data, tags: { Id: 1, NAME: 'x' } })
  })

  it('that only the controller sets cannot be set in another case', async () => {
    const { body } = await send('POST', '/identities', {
      name: 'no forgery',
      type: 'Device',
      isAdmin: false,
      ID: 'forged',
      IsDefaultAdmin: true,
      disabledat: '2020-01-01T00:00:00Z',
    })

    expect(body.data.id).not.toBe('forged')
    expect(await manage.get(`/identities/${body.data.id}`)).toMatchObject({ isDefaultAdmin: false, disabled: false })
  })

  it('of a change on the client API counts in any case', async () => {
    const people = await People.in(world)
    const person = await people.person()
    const session = await people.sessionOf(person)

    const { status } = await world.send({
      method: 'PATCH',
      path: `${CLIENT}/current-identity/authenticators/${person.authenticatorId}`,
      headers: { 'zt-session': session },
      body: { CurrentPassword: person.password, Password: 'another password' },
    })

    expect(status).toBe(200)
    expect((await people.signIn({ ...person, password: 'another password' })).status).toBe(200)
  })
})

describe('in the dialect of the documents, a member', () => {
  it.each([
    ['/services', { Name: 'x', encryptionRequired: true }, 'Name'],
    ['/posture-checks', { name: 'x', typeId: 'PROCESS', process: { OsType: 'Linux', path: '/' } }, 'process.OsType'],
    // Ignored, it would let any version pass.
    [
      '/posture-checks',
      { name: 'x', typeId: 'OS', operatingSystems: [{ type: 'Linux' }, { type: 'Windows', Versions: ['10.x'] }] },
      'operatingSystems.1.Versions',
    ],
  ])('in another case is unknown: %s', async (path, body, field) => {
    expect(await manage.refusal('POST', path, body)).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field })
  })
})
