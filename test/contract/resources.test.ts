// Rules that hold for every resource: it can be made, read, changed, listed and deleted, over HTTPS and in this process alike.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createInProcessTransport } from '../../server/in-process.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Request, Transport } from '../../src/client/transport.ts'
import { toCollectionPath, toLinkedPlural } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { MANAGEMENT, toTestResponse } from '../world/controller.ts'
import { exampleBody } from '../world/examples.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
const transports: Record<string, Transport> = {}

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  const token = await world.admin()
  transports['over HTTPS'] = createHttpTransport({ url, rootPem, headers: { 'net-session': token } })
  transports['in process'] = await createInProcessTransport(world.controller, world.directory, {
    kind: 'local-operator',
    osUser: 'tester',
  })
})
afterAll(async () => {
  await transports['over HTTPS']?.close()
})

const changeable = (resources as readonly AnyResource[]).filter(({ verbs }) => verbs.includes('create'))
const listed = (resources as readonly AnyResource[]).filter(({ verbs }) => verbs.includes('list'))
const cases = (some: readonly AnyResource[]) =>
  ['over HTTPS', 'in process'].flatMap((way) => some.map((resource) => [resource.plural, way, resource] as const))

async function send(way: string, request: Request) {
  const reply = await (transports[way] as Transport).send({ ...request, path: MANAGEMENT + request.path })
  return toTestResponse(reply)
}

async function make(way: string, resource: AnyResource, name: string) {
  const body = await exampleBody(world, resource, name)
  const response = await send(way, { method: 'POST', path: toCollectionPath(resource), body })
  expect(response.body.error).toBeUndefined()
  return { id: response.body.data.id as string, body, response }
}

const uniqueName = (resource: AnyResource, way: string, what: string) => `${what} ${resource.name} ${way}`

describe.each(cases(changeable))('%s %s', (_plural, way, resource) => {
  it('are created with an id and a link', async () => {
    const { response, id } = await make(way, resource, uniqueName(resource, way, 'created'))

    expect(response.status).toBe(201)
    expect(response.body.data).toEqual({
      _links: { self: { href: `.${toCollectionPath(resource, toLinkedPlural(resource))}/${id}` } },
      id,
    })
  })

  it('show what they were created with', async () => {
    const { id, body } = await make(way, resource, uniqueName(resource, way, 'shown'))

    const { body: shown } = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })

    expect(shown.data.id).toBe(id)
    expect(shown.data.tags).toEqual({})
    if ('name' in resource.fields) expect(shown.data.name).toBe(body.name)
    expect(Date.parse(shown.data.createdAt)).toBe(world.clock.now())
    expect(shown.meta).toMatchObject({ apiVersion: '0.0.1', apiEnrollmentVersion: '0.0.1' })
  })

  if (resource.verbs.includes('patch')) {
    it('keep on a patch what it does not name', async () => {
      const { id } = await make(way, resource, uniqueName(resource, way, 'patched'))
      const before = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })
      world.clock.advance(1000)

      const response = await send(way, {
        method: 'PATCH',
        path: `${toCollectionPath(resource)}/${id}`,
        body: { tags: { site: 'north' } },
      })

      const after = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })
      expect(response.status).toBe(200)
      expect(response.body.data).toEqual({})
      expect(after.body.data).toEqual({
        ...before.body.data,
        tags: { site: 'north' },
        updatedAt: new Date(world.clock.now()).toISOString(),
      })
    })
  }

  if (resource.verbs.includes('replace')) {
    it('lose on a replace what it does not name', async () => {
      const { id, body } = await make(way, resource, uniqueName(resource, way, 'replaced'))
      await send(way, {
        method: 'PATCH',
        path: `${toCollectionPath(resource)}/${id}`,
        body: { tags: { site: 'north' } },
      })

      const response = await send(way, { method: 'PUT', path: `${toCollectionPath(resource)}/${id}`, body })

      const after = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })
      expect(response.body.error).toBeUndefined()
      expect(after.body.data.tags).toEqual({})
    })

    it('take back a record as it was read', async () => {
      const { id, body: sent } = await make(way, resource, uniqueName(resource, way, 'sent back'))
      const { body: read } = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })
      const inputs = Object.fromEntries(
        Object.entries(resource.fields).flatMap(([name, { options }]) =>
          options.input ? [[options.input, read.data[options.access === 'internal' ? options.input : name]]] : [],
        ),
      )
      const secrets = Object.fromEntries(
        Object.entries(resource.inputs).flatMap(([name, { options }]) => (options.secret ? [[name, sent[name]]] : [])),
      )

      const response = await send(way, {
        method: 'PUT',
        path: `${toCollectionPath(resource)}/${id}`,
        body: { ...read.data, ...inputs, ...secrets },
      })

      expect(response.body.error).toBeUndefined()
    })
  }

  it('are found in their list by id', async () => {
    const { id } = await make(way, resource, uniqueName(resource, way, 'listed'))
    const filter = encodeURIComponent(`id = "${id}"`)

    const { body: list } = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}?filter=${filter}` })

    expect(list.data.map((record: { id: string }) => record.id)).toEqual([id])
    expect(list.meta.pagination).toEqual({ limit: 10, offset: 0, totalCount: 1 })
    expect(list.meta.filterableFields).toContain('id')
  })

  it('are gone once deleted', async () => {
    const { id } = await make(way, resource, uniqueName(resource, way, 'deleted'))

    const first = await send(way, { method: 'DELETE', path: `${toCollectionPath(resource)}/${id}` })
    const second = await send(way, { method: 'DELETE', path: `${toCollectionPath(resource)}/${id}` })
    const read = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}` })

    expect(first.status).toBe(200)
    expect(second.status).toBe(404)
    expect(read.body.error.code).toBe('NOT_FOUND')
  })

  it('refuse a member that is not theirs, and name it', async () => {
    const body = await exampleBody(world, resource, uniqueName(resource, way, 'extra'))

    const response = await send(way, {
      method: 'POST',
      path: toCollectionPath(resource),
      body: { ...body, colour: 'red' },
    })

    expect(response.status).toBe(400)
    expect(response.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'colour', value: 'red' } })
  })

  it('pass over such a member for clients of the other dialect', async () => {
    const body = await exampleBody(world, resource, uniqueName(resource, way, 'skipped'))
    const token = await world.admin()

    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}${toCollectionPath(resource)}`,
      headers: { 'zt-session': token },
      body: { ...body, colour: 'red' },
    })

    expect(response.status).toBe(201)
  })

  it.each([
    ['no JSON', '{"name":', 'COULD_NOT_PARSE_BODY'],
    ['a list', '[]', 'COULD_NOT_PARSE_BODY'],
    ['text', '"text"', 'COULD_NOT_PARSE_BODY'],
    ['nothing', '', 'COULD_NOT_VALIDATE'],
    ['a key into prototypes', '{"__proto__":{"isAdmin":true}}', 'COULD_NOT_PARSE_BODY'],
  ])('refuse a body that is %s', async (_what, body, code) => {
    const headers = { 'content-type': 'application/json' }

    const response = await send(way, { method: 'POST', path: toCollectionPath(resource), body, headers })

    expect(response.status).toBe(400)
    expect(response.body.error.code).toBe(code)
  })

  const required = Object.entries(resource.fields).filter(
    ([, { options }]) => options.required === true || options.required === 'create',
  )

  it.each(required.map(([name, { options }]) => [options.input ?? name]))(
    'refuse to be made without %s',
    async (member) => {
      const { [member]: _, ...body } = await exampleBody(
        world,
        resource,
        uniqueName(resource, way, `without ${member}`),
      )

      const response = await send(way, { method: 'POST', path: toCollectionPath(resource), body })

      expect(response.status).toBe(400)
      expect(response.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: member } })
    },
  )
})

describe.each(cases(listed))('the list of %s %s', (_plural, way, resource) => {
  it.each(['name = ', 'nothing = "x"', 'id = 5 and', 'sort by', 'limit x', '('])(
    'rejects the filter %s with the position of the mistake',
    async (filter) => {
      const response = await send(way, {
        method: 'GET',
        path: `${toCollectionPath(resource)}?filter=${encodeURIComponent(filter)}`,
      })

      expect(response.status).toBe(400)
      expect(response.body.error.code).toBe('INVALID_FILTER')
      expect(response.body.error.cause.message).toMatch(/at line 1, column \d+$/)
    },
  )

  it('refuses a limit that is not a number', async () => {
    const response = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}?limit=abc` })

    expect(response.status).toBe(400)
    expect(response.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'limit', value: 'abc' } })
  })

  it('gives all of its records by a limit of −1', async () => {
    const response = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}?limit=-1` })

    expect(response.status).toBe(200)
    expect(response.body.meta.pagination.limit).toBe(-1)
    expect(response.body.meta.pagination.totalCount).toBe(response.body.data.length)
  })

  it.each(Object.keys(resource.fields).filter((name) => resource.fields[name]?.options.secret))(
    'cannot be asked about the secret %s',
    async (name) => {
      const response = await send(way, {
        method: 'GET',
        path: `${toCollectionPath(resource)}?filter=${encodeURIComponent(`${name} = "x"`)}`,
      })

      expect(response.status).toBe(400)
    },
  )
})

describe.each(cases(listed.filter(({ relations }) => Object.keys(relations).length > 0)))(
  'the relations of %s %s',
  (_plural, way, resource) => {
    const relations = Object.keys(resource.relations)

    it.each(relations)('%s is not found below a record that does not exist', async (relation) => {
      const response = await send(way, {
        method: 'GET',
        path: `${toCollectionPath(resource)}/no-such-record/${relation}`,
      })

      expect(response.status).toBe(404)
    })

    it.each(resource.verbs.includes('create') ? relations : [])('%s is a list', async (relation) => {
      const { id } = await make(way, resource, uniqueName(resource, way, `with ${relation}`))

      const response = await send(way, { method: 'GET', path: `${toCollectionPath(resource)}/${id}/${relation}` })

      expect(response.status).toBe(200)
      expect(Array.isArray(response.body.data)).toBe(true)
      expect(response.body.meta.pagination).toBeDefined()
    })
  },
)
