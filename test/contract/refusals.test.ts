// Refusals of every resource: each rule of each field with its status, code and field, and that nothing of it is written.
import { beforeAll, describe, expect, it } from 'vitest'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { type AnyField, toMemberName } from '../../src/definitions/schema/fields.ts'
import { contentsOf } from '../world/contents.ts'
import { exampleBody } from '../world/examples.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
/** By resource: a record and its body, and the body of another. */
const existing = new Map<string, { id: string; other: Record<string, unknown>; body: Record<string, unknown> }>()

beforeAll(async () => {
  manage = await managementOf(world)
  for (const resource of changeable) {
    const other = { ...(await exampleBody(world, resource, `another ${resource.name}`)) }
    for (const member of uniqueMembers(resource)) other[member] ??= 'taken'
    await manage.make(resource.plural, other)
    const body = await exampleBody(world, resource, `a ${resource.name}`)
    existing.set(resource.plural, { id: await manage.make(resource.plural, body), other, body })
  }
})

const changeable = (resources as readonly AnyResource[]).filter(({ verbs }) => verbs.includes('create'))

/** The members of which no two records may have the same. */
function uniqueMembers({ fields }: AnyResource): string[] {
  return Object.entries(fields)
    .filter(([, { kind, options }]) => options.unique && kind.name === 'text' && options.access === undefined)
    .map(([name, field]) => toMemberName(name, field))
}

interface Wrong {
  /** The path of the member, and what is sent there. */
  readonly member: string
  readonly value: unknown
  readonly status: number
  readonly code: 'COULD_NOT_PARSE_BODY' | 'COULD_NOT_VALIDATE' | 'NOT_FOUND' | 'REFERENCED_ENTITY_NOT_FOUND'
  /** The field that is named, where it is another one. */
  readonly field?: string
}

const ofWrongType = (member: string, value: unknown, field = member): Wrong => ({
  member,
  value,
  field,
  status: 400,
  code: 'COULD_NOT_PARSE_BODY',
})
const againstRule = (member: string, value: unknown, field = member): Wrong => ({
  member,
  value,
  field,
  status: 400,
  code: 'COULD_NOT_VALIDATE',
})
const unknownRecord = (member: string, value: unknown, { kind }: AnyField): Wrong =>
  kind.reference?.unknownStatus === 404
    ? { member, value, status: 404, code: 'NOT_FOUND' }
    : againstRule(member, value, kind.reference?.unknown)

/** Values that a field refuses, by what its definition says of it. */
function wrongValues(name: string, field: AnyField, path = ''): Wrong[] {
  const { kind, options } = field
  const member = path + toMemberName(name, field)
  if (kind.members) {
    const inside = Object.entries(kind.members).flatMap(([inner, one]) => wrongValues(inner, one, `${member}.`))
    return [ofWrongType(member, 'text'), ofWrongType(member, []), ...inside]
  }
  switch (kind.name) {
    case 'text':
      return [
        ofWrongType(member, 7),
        ofWrongType(member, ['text']),
        ...(kind.schema.enum ? [againstRule(member, 'none of them'), againstRule(member, '')] : []),
        ...(options.minLength ? [againstRule(member, 'x'.repeat(options.minLength - 1))] : []),
        ...(options.maxLength ? [againstRule(member, 'x'.repeat(options.maxLength + 1))] : []),
        ...(kind.schema.format ? [againstRule(member, '***')] : []),
      ]
    case 'integer':
      return [
        ofWrongType(member, '7'),
        ofWrongType(member, 1.5),
        againstRule(member, 1e300),
        ...(options.min === undefined ? [] : [againstRule(member, options.min - 1)]),
        ...(options.max === undefined ? [] : [againstRule(member, options.max + 1)]),
      ]
    case 'boolean':
      return [ofWrongType(member, 'true'), ofWrongType(member, 1)]
    case 'time':
      return [againstRule(member, 'tomorrow'), ofWrongType(member, 0)]
    case 'set':
      return wrongSets(name, member, field)
    case 'reference': {
      if (kind.reference?.choices) return [ofWrongType(member, 7), againstRule(member, 'none of them')]
      return [ofWrongType(member, 7), unknownRecord(member, 'no-such-record', field)]
    }
    case 'json':
      return [
        ofWrongType(member, kind.schema.type === 'array' ? {} : []),
        ofWrongType(member, 'text'),
        ...(kind.filterType === 'tags' ? [ofWrongType(member, { nested: { a: 1 } }, `${member}.nested`)] : []),
      ]
    default:
      return []
  }
}

function wrongSets(name: string, member: string, field: AnyField): Wrong[] {
  const { kind, options } = field
  const entries = [
    ofWrongType(member, 'text'),
    ofWrongType(member, { a: 'text' }),
    ofWrongType(member, [7], `${member}.0`),
    ...(options.minItems ? [againstRule(member, [])] : []),
  ]
  if (name === 'roleAttributes') return [...entries, againstRule(member, ['#a']), againstRule(member, ['b', '@a'])]
  if (kind.roles) {
    const roles = [['bare'], [''], ['#all', '#a'], ['#all', '@no-such-record'], ['@no-such-record'], ['@']]
    return [...entries, ...roles.map((wrong) => againstRule(member, wrong))]
  }
  if (kind.target) {
    return [...entries, againstRule(member, ['twice', 'twice']), unknownRecord(member, ['no-such-record'], field)]
  }
  return entries
}

/** The wrong values of all members that a caller sets, at that method. */
function cases(resource: AnyResource, method: string): Wrong[] {
  const fields = Object.entries(resource.fields).filter(([, { options }]) => {
    const { access = 'write' } = options
    return access === 'write' || (access === 'create' && method === 'POST')
  })
  return fields.flatMap(([name, field]) => wrongValues(name, field)).map((wrong) => asDocumented(resource, wrong))
}

/** Returns the refusal that clients know instead of the usual one, if there is such. */
function asDocumented({ plural, variants }: AnyResource, wrong: Wrong): Wrong {
  const { member, code } = wrong
  if (variants && member === 'typeId') return { ...wrong, code: 'COULD_NOT_PARSE_BODY' }
  if (plural === 'enrollments' && member === 'identityId' && code === 'COULD_NOT_VALIDATE')
    return { ...wrong, status: 400, code: 'REFERENCED_ENTITY_NOT_FOUND' }
  // Of whatever JSON type it is, the schema of the config type judges it.
  if (plural === 'configs' && member === 'data') return { ...wrong, code: 'COULD_NOT_VALIDATE' }
  return wrong
}

const readView = ({ member, value }: Wrong) => `${member}: ${(JSON.stringify(value) ?? '').slice(0, 40)}`

/** The body with one of its members in another way. */
function withMember(body: Readonly<Record<string, unknown>>, path: string, value: unknown): Record<string, unknown> {
  const [first = '', ...rest] = path.split('.')
  if (rest.length === 0) return { ...body, [first]: value }
  return { ...body, [first]: withMember((body[first] ?? {}) as typeof body, rest.join('.'), value) }
}

const verbOf = { POST: 'create', PUT: 'replace', PATCH: 'patch', GET: 'detail', DELETE: 'delete' } as const

const everyCase = changeable.flatMap((resource) =>
  (['POST', 'PUT', 'PATCH'] as const)
    .filter((method) => resource.verbs.includes(verbOf[method]))
    .map((method) => ({ resource, method })),
)

/** The id of a record that exists before some refusals. */
let storedId = ''

/** Sends a request that is to be refused, and sees that it leaves nothing behind. */
async function refusalOf(method: string, path: string, body: unknown) {
  const refusal = await manage.refusal(method, path, body)
  const isUntouched = (await contentsOf(world)) === storedId
  expect(isUntouched).toBe(true)
  return refusal
}

describe.each(everyCase.map(({ resource, method }) => [method, resource.plural, resource] as const))(
  '%s of %s',
  (method, plural, resource) => {
    let body: Record<string, unknown> = {}
    let path = toCollectionPath(resource)

    beforeAll(async () => {
      const { id, body: known } = existing.get(plural) ?? {}
      if (method === 'POST') body = await exampleBody(world, resource, `a new ${resource.name}`)
      else path += `/${id}`
      if (method === 'PUT') body = known ?? {}
      storedId = await contentsOf(world)
    })

    it.each(cases(resource, method).map((wrong) => [readView(wrong), wrong]))('refuses %s', async (_shown, wrong) => {
      const { member, value, status, code, field = member } = wrong

      const refused = await refusalOf(method, path, withMember(body, member, value))

      expect(refused).toMatchObject({ status, code, field })
    })

    it.each(uniqueMembers(resource))('refuses the %s of another', async (member) => {
      const takenValue = existing.get(plural)?.other[member]

      const refused = await refusalOf(method, path, { ...body, [member]: takenValue })

      expect(refused).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: member, value: takenValue })
    })
  },
)

describe.each(changeable.map((resource) => [resource.plural, resource] as const))('an id of %s', (plural, resource) => {
  beforeAll(async () => {
    storedId = await contentsOf(world)
  })

  it.each([
    ['that is another kind of record', () => existing.get(plural === 'services' ? 'configs' : 'services')?.id],
    ['as long as a path can be', () => 'a'.repeat(4_000)],
    ['that only looks like a path', () => '..%2F..%2Fidentities'],
    ['that databases end at', () => '%00'],
    ['in another case', () => inAnotherCase(existing.get(plural)?.id ?? '')],
  ])('%s is that of no record', async (_what, id) => {
    for (const method of ['GET', 'DELETE', 'PATCH'] as const) {
      if (!resource.verbs.includes(verbOf[method])) continue

      const refused = await refusalOf(
        method,
        `${toCollectionPath(resource)}/${id()}`,
        method === 'PATCH' ? {} : undefined,
      )

      expect(refused).toMatchObject({ status: 404, code: 'NOT_FOUND' })
    }
  })
})

function inAnotherCase(id: string): string {
  return id === id.toLowerCase() ? id.toUpperCase() : id.toLowerCase()
}

describe('a reference to an unknown record', () => {
  it('is 404 where clients expect that, and 400 everywhere else', () => {
    const notFound = changeable.flatMap(({ plural, fields }) =>
      Object.entries(fields).flatMap(([name, { kind }]) =>
        kind.reference?.unknownStatus === 404 ? [`${plural} ${name}`] : [],
      ),
    )

    expect(notFound.sort()).toEqual([
      'identities authPolicyId',
      'identities hostedServices',
      'services configs',
      'terminators serviceId',
    ])
  })

  it.each([
    ['identities', { enrollment: { ottca: 'no-such-record' } }],
    ['auth-policies', { secondary: { requireTotp: false, requireExtJwtSigner: 'no-such-record' } }],
  ])('is 404 along with a new record of %s, too', async (plural, member) => {
    const resource = changeable.find((each) => each.plural === plural) as AnyResource
    const body = { ...(await exampleBody(world, resource, 'names what is not there')), ...member }

    expect(await manage.refusal('POST', toCollectionPath(resource), body)).toMatchObject({
      status: 404,
      code: 'NOT_FOUND',
    })
  })
})
