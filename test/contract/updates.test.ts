// Replacing and patching every field of every resource: what they set, what they reset, what they leave.
import { beforeAll, describe, expect, it } from 'vitest'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { type AnyField, toMemberName } from '../../src/definitions/schema/fields.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { exampleBody } from '../world/examples.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

type Body = Record<string, unknown>

const world = useController()
let manage: Management
let sequence = 0

beforeAll(async () => {
  manage = await managementOf(world)
})

const replaceable = (resources as readonly AnyResource[]).filter(
  ({ verbs }) => verbs.includes('create') && verbs.includes('replace'),
)

const accessOf = ({ options }: AnyField) => options.access ?? 'write'
const fieldsWith = ({ fields }: AnyResource, access: string) =>
  Object.entries(fields).filter(([, field]) => accessOf(field) === access)

/** Members of structured fields that name other records, of which there are none. */
const naming = new Set(['allowedSigners', 'requireExtJwtSigner'])

/** A value that is neither a field's default nor the one given; undefined for what only an example can say. */
function sampleOf(name: string, { kind, options }: AnyField, unlike: unknown = options.default): unknown {
  if (naming.has(name)) return kind.name === 'set' ? [] : undefined
  if (kind.members) {
    const otherValues = (unlike ?? {}) as Body
    const members = Object.entries(kind.members).map(([member, one]) => [
      member,
      sampleOf(member, one, otherValues[member]),
    ])
    return Object.fromEntries(members.filter(([, value]) => value !== undefined))
  }
  // The source of keys is the endpoint of the example, and a signer has only one.
  if (name === 'certPem') return undefined
  if (['uri', 'url'].includes(String(kind.schema.format))) return `https://${name}-${++sequence}.example/`
  const choices = kind.schema.enum as readonly string[] | undefined
  switch (kind.name) {
    case 'text':
      return choices?.findLast((choice) => choice !== unlike) ?? `${name} ${++sequence}`
    case 'integer':
      return Number(unlike ?? 0) + 7
    case 'boolean':
      return unlike !== true
    case 'set':
      if (kind.target) return kind.roles ? ['#b', '#a'] : undefined
      if (kind.schema.items?.enum) return (kind.schema.items.enum as string[]).slice(0, Array.isArray(unlike) ? 1 : 2)
      if (name.endsWith('Uris')) return ['https://b', 'https://a']
      if (name === 'permissions')
        return Array.isArray(unlike) && unlike.includes('ca') ? ['config'] : ['service:#web', 'ca']
      return Array.isArray(unlike) && unlike.includes('a') ? ['c'] : ['b', 'a']
    case 'json':
      return kind.filterType === 'tags' ? { key: 'value', other: 1 } : undefined
    default:
      return undefined
  }
}

/** A body with every member that can be said, none of them as it would be without. */
async function fullBody(resource: AnyResource): Promise<Body> {
  const body = await exampleBody(world, resource, `a ${resource.name} ${++sequence}`)
  for (const [name, field] of fieldsWith(resource, 'write')) {
    if (name === 'name') continue
    const sample = sampleOf(name, field)
    if (sample !== undefined) body[toMemberName(name, field)] = sample
  }
  return body
}

/** The members that rules beyond the definitions require of the examples. */
const requiredByRules: Readonly<Record<string, readonly string[]>> = {
  authenticators: ['username', 'password'],
  'external-jwt-signers': ['jwksEndpoint'],
  webhooks: ['secret'],
}

/** The members of a body without which it would be refused. */
function requiredOf(resource: AnyResource, body: Body, purpose: 'create' | 'replace'): Body {
  const required = Object.entries(resource.fields).filter(([, { options }]) =>
    ([true, purpose] as unknown[]).includes(options.required),
  )
  const names = [
    ...(requiredByRules[resource.plural] ?? []),
    ...required.map(([name, field]) => toMemberName(name, field)),
    ...(resource.variants ? variantMembers(resource, body) : []),
  ]
  return Object.fromEntries(names.map((name) => [name, body[name]]))
}

const variantMembers = ({ variants }: AnyResource, { typeId }: Body) => Object.keys(variants?.[String(typeId)] ?? {})

type Purpose = 'create' | 'replace' | 'patch'

/** Whether the definition says that a body may hold null there; `openapi.test.ts` holds that against the contract. */
function acceptsNull({ kind, options }: AnyField, purpose: Purpose): boolean {
  return kind.acceptsNull === true || options.acceptsNull === true || options.acceptsNull === purpose
}

/** The same body, with null for every member that it does not have and that may be null. */
function withNulls(resource: AnyResource, purpose: Purpose, body: Body): Body {
  const nullable = fieldsWith(resource, 'write').filter(([, field]) => acceptsNull(field, purpose))
  return { ...Object.fromEntries(nullable.map(([name, field]) => [toMemberName(name, field), null])), ...body }
}

/** The fields of a record that callers set, as it is shown. */
async function shownFields(resource: AnyResource, id: string): Promise<Body> {
  const record = await manage.get(`${toCollectionPath(resource)}/${id}`)
  const names = Object.entries(resource.fields)
    .filter(([, field]) => ['write', 'create'].includes(accessOf(field)) && !field.options.secret)
    .map(([name]) => name)
  const own = resource.variants ? variantMembers(resource, record) : []
  return Object.fromEntries([...names, ...own].map((name) => [name, record[name]]))
}

/** The fields of a shown record that callers set once. */
const lasting = (resource: AnyResource, shown: Body): Body =>
  Object.fromEntries(fieldsWith(resource, 'create').map(([name]) => [name, shown[name]]))

describe.each(replaceable.map((resource) => [resource.plural, resource] as const))('%s', (plural, resource) => {
  const collection = toCollectionPath(resource)
  const make = (body: Body) => manage.make(collection.slice(1), body)

  it('show every member as it was sent', async () => {
    const body = await fullBody(resource)

    const record = await manage.get(`${collection}/${await make(body)}`)

    for (const [name, field] of fieldsWith(resource, 'write')) {
      const sentValue = body[toMemberName(name, field)]
      if (sentValue === undefined || field.options.secret) continue
      const storedValue = field.kind.name === 'set' ? [...(sentValue as string[])].sort() : sentValue
      if (field.kind.members) expect(record[name]).toMatchObject(sortedSets(storedValue as Body))
      else expect(record[name]).toEqual(storedValue)
    }
  })

  it.each(['absent', 'null'])('fall back to their defaults where members are %s in a replacement', async (how) => {
    const body = await fullBody(resource)
    const full = await make(body)
    const before = await shownFields(resource, full)
    const fresh = await fullBody(resource)
    const defaults = await shownFields(resource, await make(requiredOf(resource, fresh, 'create')))
    const required = requiredOf(resource, body, 'replace')

    await manage.change(
      'PUT',
      `${collection}/${full}`,
      how === 'null' ? withNulls(resource, 'replace', required) : required,
    )

    const expected = { ...defaults, ...lasting(resource, before), ...shownAs(resource, required, before) }
    expect(await shownFields(resource, full)).toEqual(expected)
  })

  it('are made with their defaults where members are null', async () => {
    const [one, two] = [await fullBody(resource), await fullBody(resource)]
    const required = requiredOf(resource, one, 'create')
    const absent = await shownFields(resource, await make(requiredOf(resource, two, 'create')))

    const view = await shownFields(resource, await make(withNulls(resource, 'create', required)))

    expect(view).toEqual({ ...absent, ...shownAs(resource, required, view) })
  })

  it('fall back to their defaults by null in a patch, and stay as they are where they have none', async () => {
    const body = await fullBody(resource)
    const id = await make(body)
    const before = await shownFields(resource, id)
    const fresh = await fullBody(resource)
    const defaults = await shownFields(resource, await make(requiredOf(resource, fresh, 'create')))
    const isNeeded = (name: string) => requiredByRules[plural]?.includes(name) === true
    const cleared = fieldsWith(resource, 'write').filter(
      ([name, field]) => acceptsNull(field, 'patch') && !field.options.required && name in before && !isNeeded(name),
    )
    const nulls = Object.entries(withNulls(resource, 'patch', {})).filter(([name]) => !isNeeded(name))

    await manage.change('PATCH', `${collection}/${id}`, Object.fromEntries(nulls))

    const expected = Object.fromEntries(cleared.map(([name]) => [name, defaults[name]]))
    expect(await shownFields(resource, id)).toEqual({ ...before, ...expected })
  })

  const unaccepting = fieldsWith(resource, 'write').filter(([, field]) => !acceptsNull(field, 'patch'))

  it.skipIf(unaccepting.length === 0).each(unaccepting.map(([name, field]) => toMemberName(name, field)))(
    'refuse null in a patch as their %s, and take it for absent from clients of the other dialect',
    async (member) => {
      const id = await make(await fullBody(resource))
      const before = await shownFields(resource, id)
      const path = `${MANAGEMENT}${collection}/${id}`
      const headers = { 'zt-session': await world.admin() }

      const refused = await manage.refusal('PATCH', `${collection}/${id}`, { [member]: null })
      const ignored = await world.send({ method: 'PATCH', path, headers, body: { [member]: null } })

      expect(refused).toMatchObject({ status: 400, code: expect.stringMatching(/^COULD_NOT_/), field: member })
      expect(ignored.status).toBe(200)
      expect(await shownFields(resource, id)).toEqual(before)
    },
  )

  const choices = fieldsWith(resource, 'write').filter(
    ([, { kind, options }]) => kind.name === 'text' && kind.schema.enum && options.default !== undefined,
  )

  it.skipIf(choices.length === 0).each(choices)(
    'refuse empty text as their %s, and take it for the default from clients of the other dialect',
    async (name, field) => {
      const body = { ...(await fullBody(resource)), [name]: sampleOf(name, field) }
      const blank = { [name]: '' }
      const headers = { 'zt-session': await world.admin() }
      const send = async (method: 'POST' | 'PUT' | 'PATCH', path: string, sent: Body) => {
        const response = await world.send({ method, path: `${MANAGEMENT}${collection}${path}`, headers, body: sent })
        expect(response.status).toBe(method === 'POST' ? 201 : 200)
        return response.body.data
      }
      const readValue = async (id: string) => (await manage.get(`${collection}/${id}`))[name]

      const refused = await manage.refusal('POST', collection, { ...body, ...blank })
      const creation = await send('POST', '', { ...body, ...(await fullBody(resource)), ...blank })
      const [replacedId, patchedId] = [await make(body), await make({ ...body, ...(await fullBody(resource)) })]
      await send('PUT', `/${replacedId}`, { ...body, ...blank })
      await send('PATCH', `/${patchedId}`, blank)

      expect(refused).toMatchObject({ status: 400, field: name })
      for (const id of [creation.id, replacedId, patchedId]) expect(await readValue(id)).toBe(field.options.default)
    },
  )

  it('are found by their names in any case by clients of the other dialect', async () => {
    const body = await fullBody(resource)
    const upper = Object.fromEntries(Object.entries(body).map(([name, value]) => [name.toUpperCase(), value]))
    const headers = { 'zt-session': await world.admin() }

    const creation = await world.send({ method: 'POST', path: MANAGEMENT + collection, headers, body: upper })

    expect(creation.status).toBe(201)
    const view = await shownFields(resource, creation.body.data.id)
    for (const [name, field] of fieldsWith(resource, 'write')) {
      const sentValue = body[toMemberName(name, field)]
      if (sentValue === undefined || field.options.secret || field.kind.members || field.kind.name === 'set') continue
      expect(view[name]).toEqual(sentValue)
    }
  })

  const patchable = fieldsWith(resource, 'write').filter(
    ([name, field]) => name !== 'name' && !field.options.secret && sampleOf(name, field) !== undefined,
  )

  it.each(patchable.map(([name]) => name))('change in nothing else by a patch of their %s', async (name) => {
    const field = resource.fields[name] as AnyField
    const id = await make(requiredOf(resource, await fullBody(resource), 'create'))
    const before = await shownFields(resource, id)
    const sample = sampleOf(name, field, before[name])

    await manage.change('PATCH', `${collection}/${id}`, { [toMemberName(name, field)]: sample })

    const after = await shownFields(resource, id)
    expect({ ...after, [name]: null }).toEqual({ ...before, [name]: null })
    expect(after[name]).not.toEqual(before[name])
  })

  it.each(['PATCH', 'PUT'] as const)('take back a whole record as they show it, by %s', async (method) => {
    const id = await make(await fullBody(resource))
    const before = await manage.get(`${collection}/${id}`)
    // A record never shows its secrets.
    const secrets = Object.fromEntries(
      Object.entries(await fullBody(resource)).filter(
        ([member]) => requiredByRules[plural]?.includes(member) && !(member in before),
      ),
    )

    await manage.change(method, `${collection}/${id}`, { ...before, ...(method === 'PUT' ? secrets : {}) })

    const after = await manage.get(`${collection}/${id}`)
    expect({ ...after, updatedAt: before.updatedAt }).toEqual(before)
  })

  it('take back what they show of themselves, and let none of it be forged', async () => {
    const id = await make(await fullBody(resource))
    const before = await manage.get(`${collection}/${id}`)
    const forged = Object.fromEntries(
      [...fieldsWith(resource, 'read'), ...fieldsWith(resource, 'internal')].map(([name]) => [name, before[name]]),
    )

    await manage.change('PATCH', `${collection}/${id}`, {
      ...Object.fromEntries(Object.entries(forged).filter(([, value]) => value !== undefined)),
      id: 'forged',
      createdAt: '2001-01-01T00:00:00.000Z',
      updatedAt: '2001-01-01T00:00:00.000Z',
      _links: {},
    })

    expect(await manage.get(`${collection}/${id}`)).toEqual(before)
  })
})

/** Of the required members, those that a record shows under the same name, in the way it shows them. */
function shownAs(resource: AnyResource, required: Body, shown: Body): Body {
  const names = Object.entries(resource.fields)
    .filter(([name, field]) => toMemberName(name, field) in required && name in shown)
    .map(([name]) => name)
  const own = Object.keys(required).filter((name) => resource.variants && name in shown)
  return Object.fromEntries([...names, ...own].map((name) => [name, shown[name]]))
}

/** A structured value with its sets in the order in which they are kept. */
function sortedSets(value: Body): Body {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (Array.isArray(member)) return [name, [...member].sort()]
      return [name, typeof member === 'object' && member !== null ? sortedSets(member as Body) : member]
    }),
  )
}
