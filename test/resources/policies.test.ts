// Policies of all three kinds: their roles, whom they match, and what happens when what they name goes.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { type Kind, kinds, makeRecord } from '../world/policies.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

const everySide = kinds.flatMap(({ plural, more, sides }) =>
  Object.entries(sides).map(([field, kind]) => ({ plural, more, field, kind: kind as Kind })),
)

describe.each(everySide)('the $field of $plural', ({ plural, more, field, kind }) => {
  const make = (roles: string[], semantic = 'AnyOf') =>
    manage.make(plural, { name: newName('policy'), semantic, ...more, [field]: roles })
  const refused = (roles: unknown) =>
    manage.refusal('POST', `/${plural}`, { name: newName('policy'), semantic: 'AnyOf', ...more, [field]: roles })

  it('are kept once each, in order, with names for people', async () => {
    const { id, name } = await makeRecord(manage, kind)

    const policy = await make(['#b', `@${id}`, '#a', '#b'])

    const view = await manage.get(`/${plural}/${policy}`)
    expect(view[field]).toEqual(['#a', '#b', `@${id}`])
    expect(view[`${field}Display`]).toEqual([
      { name: '#a', role: '#a' },
      { name: '#b', role: '#b' },
      { name: `@${name}`, role: `@${id}` },
    ])
  })

  it('match by any attribute, by all of them, by id, or everything', async () => {
    const attribute = newName('attribute')
    const both = await makeRecord(manage, kind, [attribute, `${attribute} 2`])
    const one = await makeRecord(manage, kind, [attribute])
    const none = await makeRecord(manage, kind)
    const listed = async (policy: string) => {
      const path = `/${plural}/${policy}/${kind}?limit=500&filter=${encodeURIComponent('true sort by name')}`
      const names = await manage.names(path)
      return [both, one, none].filter(({ name }) => names.includes(name))
    }
    const roles = [`#${attribute}`, `#${attribute} 2`]

    expect(await listed(await make(roles, 'AnyOf'))).toEqual([both, one])
    expect(await listed(await make(roles, 'AllOf'))).toEqual([both])
    expect(await listed(await make([...roles, `@${none.id}`], 'AllOf'))).toEqual([both, none])
    const ofAll = await make(['#all'], 'AllOf')
    expect(await listed(ofAll)).toEqual([both, one, none])
    await manage.change('DELETE', `/${plural}/${ofAll}`)
    expect(await listed(await make([]))).toEqual([])
  })

  it('may be more than a statement could ask for one by one', async () => {
    const attributes = Array.from({ length: 1_500 }, (_, at) => newName(`attribute ${at}`))
    const roles = attributes.map((attribute) => `#${attribute}`)
    const all = await makeRecord(manage, kind, attributes)
    await makeRecord(manage, kind, attributes.slice(1))
    const policy = await make(roles, 'AllOf')

    const matches = await manage.names(`/${plural}/${policy}/${kind}`)
    await manage.change('PATCH', `/${plural}/${policy}`, { semantic: 'AnyOf' })

    expect(matches).toEqual([all.name])
    expect(await manage.names(`/${plural}/${policy}/${kind}`)).toHaveLength(2)
  })

  it('are refused where they are no roles, name what is not there, or hold more than #all', async () => {
    expect(await refused(['staff'])).toEqual({
      status: 400,
      code: 'COULD_NOT_VALIDATE',
      field,
      value: '["staff"]',
    })
    expect(await refused(['#all', '#staff'])).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field })
    expect(await refused(['@nope', '#staff'])).toEqual({
      status: 400,
      code: 'COULD_NOT_VALIDATE',
      field,
      value: '["nope"]',
    })
    expect(await refused('#staff')).toMatchObject({ status: 400, code: 'COULD_NOT_PARSE_BODY', field })
    expect(await refused([7])).toMatchObject({ status: 400, code: 'COULD_NOT_PARSE_BODY' })
  })

  it('are refused where they name a record of another kind', async () => {
    const other = await makeRecord(manage, kind === 'services' ? 'identities' : 'services')

    expect(await refused([`@${other.id}`])).toMatchObject({ status: 400, field, value: `["${other.id}"]` })
  })

  it('lose the record that goes, and no other', async () => {
    const going = await makeRecord(manage, kind)
    const staying = await makeRecord(manage, kind)
    const policy = await make(['#a', `@${going.id}`, `@${staying.id}`])

    await manage.change('DELETE', `/${kind}/${going.id}`)

    const view = await manage.get(`/${plural}/${policy}`)
    expect(view[field]).toEqual(['#a', `@${staying.id}`])
  })

  it('follow a change of the semantic alone', async () => {
    const attribute = newName('attribute')
    await makeRecord(manage, kind, [attribute])
    const policy = await make([`#${attribute}`, '#missing'], 'AllOf')
    const before = await manage.names(`/${plural}/${policy}/${kind}`)

    await manage.change('PATCH', `/${plural}/${policy}`, { semantic: 'AnyOf' })

    expect(before).toEqual([])
    expect(await manage.names(`/${plural}/${policy}/${kind}`)).toHaveLength(1)
  })

  it('are emptied by a replacement that does not name them, and kept by a patch', async () => {
    const name = newName('policy')
    const policy = await manage.make(plural, { name, semantic: 'AnyOf', ...more, [field]: ['#a'] })

    await manage.change('PATCH', `/${plural}/${policy}`, { tags: { a: 'b' } })
    const patched = await manage.get(`/${plural}/${policy}`)
    await manage.change('PUT', `/${plural}/${policy}`, { name, semantic: 'AnyOf', ...more })

    expect(patched[field]).toEqual(['#a'])
    expect((await manage.get(`/${plural}/${policy}`))[field]).toEqual([])
  })
})

describe.each(kinds)('$plural', ({ plural, more }) => {
  it.each([
    ['semantic', { semantic: undefined }, 'COULD_NOT_VALIDATE'],
    ['semantic', { semantic: 'SomeOf' }, 'COULD_NOT_VALIDATE'],
    ['semantic', { semantic: 'anyof' }, 'COULD_NOT_VALIDATE'],
    ['name', { name: undefined }, 'COULD_NOT_VALIDATE'],
    ['name', { name: '' }, 'COULD_NOT_VALIDATE'],
  ])('need a proper %s (%j)', async (field, wrong, code) => {
    const body = { name: newName('policy'), semantic: 'AnyOf', ...more, ...wrong }

    expect(await manage.refusal('POST', `/${plural}`, body)).toMatchObject({ status: 400, code, field })
  })

  it('have names of their own', async () => {
    const name = newName('policy')
    await manage.make(plural, { name, semantic: 'AnyOf', ...more })

    const refused = await manage.refusal('POST', `/${plural}`, { name, semantic: 'AnyOf', ...more })

    expect(refused).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name', value: name })
  })
})

describe('service policies', () => {
  it.each([undefined, 'Invalid', 'dial'])('have no type %s', async (type) => {
    const refused = await manage.refusal('POST', '/service-policies', {
      name: newName('policy'),
      semantic: 'AnyOf',
      type,
    })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'type' })
  })

  it('keep their posture checks when their type changes, and grant the other right', async () => {
    const identity = await makeRecord(manage, 'identities')
    const service = await makeRecord(manage, 'services')
    const policy = await manage.make('service-policies', {
      name: newName('policy'),
      semantic: 'AnyOf',
      type: 'Dial',
      identityRoles: [`@${identity.id}`],
      serviceRoles: [`@${service.id}`],
      postureCheckRoles: ['#strict'],
    })

    await manage.change('PATCH', `/service-policies/${policy}`, { type: 'Bind' })

    expect((await manage.get(`/service-policies/${policy}`)).postureCheckRoles).toEqual(['#strict'])
    expect(await manage.names(`/identities/${identity.id}/services?policyType=dial`)).toEqual([])
    expect(await manage.names(`/identities/${identity.id}/services?policyType=bind`)).toEqual([service.name])
  })

  it.each(['type = "Bind"', 'type = 2'])('can be listed by %s', async (filter) => {
    const name = newName('bind policy')
    await manage.make('service-policies', { name, semantic: 'AnyOf', type: 'Bind' })

    const text = encodeURIComponent(`${filter} and name = "${name}"`)

    expect(await manage.names(`/service-policies?filter=${text}`)).toEqual([name])
  })

  it('can be asked which of them match an identity, or a service', async () => {
    const identity = await makeRecord(manage, 'identities', ['matched'])
    const service = await makeRecord(manage, 'services', ['matched too'])
    const name = newName('policy')
    await manage.make('service-policies', {
      name,
      semantic: 'AnyOf',
      type: 'Dial',
      identityRoles: ['#matched'],
      serviceRoles: ['#matched too'],
    })
    const ask = (filter: string) => manage.names(`/service-policies?filter=${encodeURIComponent(filter)}`)

    expect(await ask(`anyOf(identities) = "${identity.id}"`)).toEqual([name])
    expect(await ask(`anyOf(services) = "${service.id}"`)).toEqual([name])
  })
})
