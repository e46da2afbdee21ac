// Config types and configs: what a schema must be, what data must match, and what is in use.
import { beforeAll, describe, expect, it } from 'vitest'
import { MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = () => `config ${++sequence}`
const schema = { type: 'object', properties: { port: { type: 'integer', maximum: 10 } }, required: ['port'] }
const makeType = (more: object = { schema }) => manage.make('config-types', { name: newName(), ...more })
const makeConfig = (configTypeId: string, data: object = { port: 1 }) =>
  manage.make('configs', { name: newName(), configTypeId, data })

describe('a config type', () => {
  it.each([
    ['a list', []],
    ['text', 'object'],
    ['a number', 7],
  ])('has no schema that is %s', async (_what, wrong) => {
    const refused = await manage.refusal('POST', '/config-types', { name: newName(), schema: wrong })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_PARSE_BODY', field: 'schema' })
  })

  it.each([
    ['of another type', { type: 'string' }],
    ['without a type', { properties: {} }],
    ['of several types', { type: ['object', 'null'] }],
    ['that is not a schema', { type: 'object', properties: 7 }],
    ['that refers elsewhere', { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } }],
    ['that refers to nothing', { type: 'object', properties: { a: { $ref: '#/definitions/none' } } }],
    ['with a pattern that is none', { type: 'object', properties: { a: { type: 'string', pattern: '(' } } }],
    ['that is asynchronous', { type: 'object', $async: true }],
    ['too large', { type: 'object', description: 'x'.repeat(70_000) }],
  ])('has no schema %s', async (_what, wrong) => {
    const refused = await manage.refusal('POST', '/config-types', { name: newName(), schema: wrong })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'schema' })
  })

  it('is not called all', async () => {
    const id = await makeType()

    expect(await manage.refusal('POST', '/config-types', { name: 'all' })).toMatchObject({ status: 400, field: 'name' })
    expect(await manage.refusal('PATCH', `/config-types/${id}`, { name: 'all' })).toMatchObject({ field: 'name' })
  })

  it('keeps its schema on a patch that does not name it, and loses it on such a replacement', async () => {
    const id = await makeType()

    await manage.change('PATCH', `/config-types/${id}`, { name: newName() })
    const patched = await manage.get(`/config-types/${id}`)
    await manage.change('PUT', `/config-types/${id}`, { name: newName() })

    expect(patched.schema).toEqual(schema)
    expect((await manage.get(`/config-types/${id}`)).schema).toBeNull()
  })

  it('is not deleted while configs are of it', async () => {
    const id = await makeType()
    const config = await makeConfig(id)

    const refused = await manage.refusal('DELETE', `/config-types/${id}`)
    await manage.change('DELETE', `/configs/${config}`)
    await manage.change('DELETE', `/config-types/${id}`)

    expect(refused).toMatchObject({ status: 409, code: 'CAN_NOT_DELETE_REFERENCED_ENTITY' })
  })

  it('takes any object where it has no schema, or an empty one', async () => {
    for (const more of [{}, { schema: {} }, { schema: null }]) {
      const id = await makeType(more)

      await makeConfig(id, { anything: [1, { goes: null }] })
    }
  })
})

describe('a config', () => {
  it.each([
    ['the whole', {}, 'port'],
    ['a member', { port: 11 }, 'port'],
    ['a type', { port: '1' }, 'port'],
  ])('that breaks the schema of its type in %s is refused by its path', async (_what, data, field) => {
    const configTypeId = await makeType()

    const refused = await manage.refusal('POST', '/configs', { name: newName(), configTypeId, data })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field })
  })

  it('that breaks a rule about the whole is refused as (root), and one deep inside by its path', async () => {
    const configTypeId = await makeType({
      schema: {
        type: 'object',
        maxProperties: 1,
        properties: { hosts: { type: 'array', items: { type: 'object', properties: { 'a/b': { type: 'string' } } } } },
      },
    })
    const refused = (data: object) => manage.refusal('POST', '/configs', { name: newName(), configTypeId, data })

    expect(await refused({ a: 1, b: 2 })).toMatchObject({ code: 'COULD_NOT_VALIDATE', field: '(root)' })
    expect(await refused({ hosts: [{}, { 'a/b': 7 }] })).toMatchObject({
      code: 'COULD_NOT_VALIDATE',
      field: 'hosts.1.a/b',
      value: '7',
    })
  })

  it.each([
    ['no type', { configTypeId: undefined }, 'COULD_NOT_VALIDATE', 'configTypeId'],
    ['a type that does not exist', { configTypeId: 'nope' }, 'COULD_NOT_VALIDATE', 'type'],
    ['an empty type', { configTypeId: '' }, 'COULD_NOT_VALIDATE', 'type'],
    ['no data', { data: undefined }, 'COULD_NOT_VALIDATE', 'data'],
    ['data that is a list', { data: [] }, 'COULD_NOT_VALIDATE', 'data'],
    ['data that is text', { data: 'x' }, 'COULD_NOT_VALIDATE', 'data'],
    ['data that is a number', { data: 5 }, 'COULD_NOT_VALIDATE', 'data'],
    ['data that is null', { data: null }, 'COULD_NOT_VALIDATE', 'data'],
  ])('is not made with %s', async (_what, wrong, code, field) => {
    const configTypeId = await makeType({})
    const body = { name: newName(), configTypeId, data: {}, ...wrong }

    expect(await manage.refusal('POST', '/configs', body)).toMatchObject({ status: 400, code, field })
  })

  it('keeps its type', async () => {
    const [type, other] = [await makeType({}), await makeType({})]
    const id = await makeConfig(type)

    await manage.change('PATCH', `/configs/${id}`, { configTypeId: other })
    await manage.change('PUT', `/configs/${id}`, { name: newName(), configTypeId: other, data: {} })

    expect((await manage.get(`/configs/${id}`)).configTypeId).toBe(type)
  })

  it('that was made before its schema was tightened can be renamed, but not sent again', async () => {
    const type = await makeType({ schema: { type: 'object' } })
    const id = await makeConfig(type, { port: 99 })
    await manage.change('PATCH', `/config-types/${type}`, { schema })

    await manage.change('PATCH', `/configs/${id}`, { name: newName(), tags: { old: true } })
    const refused = await manage.refusal('PATCH', `/configs/${id}`, { data: { port: 99 } })

    expect(refused).toMatchObject({ status: 400, field: 'port' })
  })

  it('comes back with its numbers as they were', async () => {
    const data = { whole: 9007199254740991, part: 1.5, negative: -0.25, list: [1, 2.5] }
    const id = await makeConfig(await makeType({}), data)

    expect((await manage.get(`/configs/${id}`)).data).toEqual(data)
  })

  it('is not deleted while a service carries it', async () => {
    const id = await makeConfig(await makeType())
    const service = await manage.make('services', { name: newName(), encryptionRequired: true, configs: [id] })

    const refused = await manage.refusal('DELETE', `/configs/${id}`)
    await manage.change('PATCH', `/services/${service}`, { configs: [] })
    await manage.change('DELETE', `/configs/${id}`)

    expect(refused).toMatchObject({ status: 409, code: 'CAN_NOT_DELETE_REFERENCED_ENTITY' })
  })

  it('that would be checked for ever is refused, and the controller goes on', async () => {
    const configTypeId = await makeType({
      schema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
    })
    const body = { name: newName(), configTypeId, data: { a: `${'a'.repeat(60)}!` } }

    const refused = await manage.refusal('POST', '/configs', body)

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'data' })
    await makeConfig(configTypeId, { a: 'aaaa' })
  })
})

describe('bodies that no field can hold', () => {
  /** As many lists inside one another. */
  class Nested {
    readonly depth: number
    constructor(depth: number) {
      this.depth = depth
    }
  }
  const nested = (depth: number) => new Nested(depth)

  it.each([
    ['nested more deeply than anything sensible', () => ({ data: { a: nested(100) } })],
    ['nested so deeply that a stack would not last', () => ({ data: { a: nested(200_000) } })],
    ['nested deeply where nothing may be nested', () => ({ data: {}, tags: { a: nested(200_000) } })],
    ['with half a character', () => ({ data: { a: '\ud800' } })],
    ['with half a character in a name', () => ({ data: { '\udfff': 1 } })],
    ['with the end of a text', () => ({ data: {}, name: 'a\0b' })],
  ])('are refused: %s', async (_what, wrong) => {
    const configTypeId = await makeType({})
    const body = jsonText({ name: newName(), configTypeId, ...wrong() })
    const headers = { 'content-type': 'application/json' }
    const token = await world.admin()

    const response = await world.send({ method: 'POST', path: `${MANAGEMENT}/configs`, body, headers, token })

    expect(response.status).toBe(400)
    expect(response.body.error.code).toBe('COULD_NOT_PARSE_BODY')
  })

  /** JSON text, also of what is nested more deeply than the language's own printer goes. */
  function jsonText(value: unknown): string {
    if (value instanceof Nested) return '['.repeat(value.depth) + ']'.repeat(value.depth)
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`)
    return `{${members.join(',')}}`
  }
})
