// Every integer that a body can hold has a range, and whatever lies in it can be stored, read, listed and filtered by.
import { beforeAll, describe, expect, it } from 'vitest'
import { operations } from '../../server/operations/operations.ts'
import { buildInputSchema } from '../../src/definitions/model/input.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { exampleBody } from '../world/examples.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let sequence = 0

beforeAll(async () => {
  manage = await managementOf(world)
})

// Stands for the keys of a map.
const ANY_KEY = '*'

interface IntegerMember {
  readonly path: readonly string[]
  readonly minimum: number | undefined
  readonly maximum: number | undefined
}

/** The integers in values of a schema, at any depth. */
function integersOf(schema: JsonSchema, path: readonly string[] = []): IntegerMember[] {
  if (schema.type === 'integer') {
    return [{ path, minimum: schema.minimum as number | undefined, maximum: schema.maximum as number | undefined }]
  }
  const values = schema.additionalProperties
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) => integersOf(member, [...path, name])),
    ...(typeof values === 'object' && values !== null ? integersOf(values as JsonSchema, [...path, ANY_KEY]) : []),
    ...(schema.items ? integersOf(schema.items, path) : []),
    ...((schema.oneOf as readonly JsonSchema[] | undefined) ?? []).flatMap((one) => integersOf(one, path)),
  ]
}

const inBodies = operations.flatMap(({ id, body }) =>
  body ? integersOf(body.schema).map((member) => ({ id, name: member.path.join('.'), ...member })) : [],
)

describe('an integer in a body', () => {
  it.each(inBodies)('of $id has a range: $name', ({ minimum, maximum }) => {
    expect(minimum).toBeTypeOf('number')
    expect(maximum).toBeTypeOf('number')
    expect(Number.isSafeInteger(minimum) && Number.isSafeInteger(maximum)).toBe(true)
  })
})

interface Case {
  readonly resource: AnyResource
  readonly plural: string
  readonly name: string
  readonly typeId: string | undefined
  readonly member: IntegerMember
}

const cases: Case[] = (resources as readonly AnyResource[])
  .filter(({ verbs }) => verbs.includes('create'))
  .flatMap((resource) => {
    const schema = buildInputSchema(resource, 'create')
    const variants = Object.keys(resource.variants ?? {})
    const ofVariants = (schema.oneOf as readonly JsonSchema[] | undefined) ?? []
    const findMatches = resource.variants
      ? ofVariants.flatMap((one, at) => integersOf(one).map((member) => ({ member, typeId: variants[at] })))
      : integersOf(schema).map((member) => ({ member, typeId: undefined }))
    return findMatches.map((each) => ({ ...each, resource, plural: resource.plural, name: each.member.path.join('.') }))
  })

/** A valid body with the integer set. */
async function bodyWith({ resource, member, typeId }: Case, value: number): Promise<Record<string, unknown>> {
  const name = `integers ${++sequence}`
  const body = typeId === undefined ? await exampleBody(world, resource, name) : { name, typeId }
  const copy = structuredClone(body) as Record<string, unknown>
  let inner = copy
  for (const step of member.path.slice(0, -1)) {
    inner[step] = { ...(inner[step] as object | undefined) }
    inner = inner[step] as Record<string, unknown>
  }
  const last = member.path.at(-1) ?? ''
  // The only maps of integers are by services.
  const key = last === ANY_KEY ? await manage.make('services', { name: `for ${name}`, encryptionRequired: true }) : last
  inner[key] = value
  return copy
}

function valueAt(record: Record<string, unknown>, path: readonly string[]): unknown {
  let value: unknown = record
  for (const step of path) {
    const within = value as Record<string, unknown>
    value = step === ANY_KEY ? Object.values(within)[0] : within[step]
  }
  return value
}

describe.each(cases)('$plural: $name', (one) => {
  const { resource, plural, member } = one
  const { path, minimum = 0, maximum = 0 } = member

  it.each([
    ['least', minimum],
    ['greatest', maximum],
  ])('can have the %s value, and is shown, listed and filtered by it', async (_which, value) => {
    const id = await manage.make(plural, await bodyWith(one, value))

    const record = await manage.get(`/${plural}/${id}`)
    const list = await manage.call('GET', `/${plural}?limit=500`)
    const all = await manage.call('GET', `/${plural}?limit=-1`)

    const view = valueAt(record, path)
    // A value that has a meaning of its own below a bound is stored as that bound.
    if (value >= 0) expect(view).toBe(value)
    else expect(view).toBeGreaterThanOrEqual(value)
    expect([list.status, all.status]).toEqual([200, 200])
    expect(list.body.data).toContainEqual(record)
    const { filterableFields } = list.body.meta
    if (!filterableFields.includes(path.join('.'))) return
    const filter = encodeURIComponent(`${path.join('.')} = ${view}`)
    const matches = await manage.get(`/${plural}?limit=500&filter=${filter}`)
    expect(matches.map((each: { id: string }) => each.id)).toContain(id)
  })

  it('can be patched to either, where it can be patched', async () => {
    if (!resource.verbs.includes('patch')) return
    const least = await bodyWith(one, minimum)
    const id = await manage.make(plural, least)
    const [member = ''] = path

    const { [member]: value, typeId } = await bodyWith(one, maximum)
    await manage.change('PATCH', `/${plural}/${id}`, { [member]: value, ...(typeId ? { typeId } : {}) })

    expect(valueAt(await manage.get(`/${plural}/${id}`), path)).toBe(maximum)
  })

  it.each([
    ['below', minimum - 1],
    ['above', maximum + 1],
    ['far below', -1e300],
    ['far above', 1e300],
  ])('is refused %s its range', async (_where, value) => {
    const { status, body } = await manage.call('POST', `/${plural}`, await bodyWith(one, value))

    expect(status).toBe(400)
    expect(body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE' })
    expect(body.error.cause.field).toMatch(new RegExp(`^${path.slice(0, -1).join('\\.')}`))
  })
})
