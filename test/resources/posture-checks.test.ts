// Posture checks: what each type stores of what it is sent, how it is changed, and what it refuses.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = () => `check ${++sequence}`

/** For each type: the body that creates a check, the record that it then shows, and what a replacement must name. */
const types = {
  OS: {
    body: 'postureCheckOperatingSystem',
    sent: {
      operatingSystems: [
        { type: 'Windows', versions: ['>=10.0.0 <11.0.0', '10.x'] },
        { type: 'Linux', versions: ['4.x'] },
        { type: 'Linux', versions: null },
      ],
    },
    shown: {
      operatingSystems: [
        { type: 'Linux', versions: [] },
        { type: 'Windows', versions: ['10.x', '>=10.0.0 <11.0.0'] },
      ],
    },
    required: ['operatingSystems'],
  },
  PROCESS: {
    body: 'postureCheckProcess',
    sent: { process: { osType: 'Linux', path: '/bin/a', hashes: ['AB:cd', 'abcd'], signerFingerprint: '' } },
    shown: { process: { osType: 'Linux', path: '/bin/a', hashes: ['abcd'] } },
    required: ['process'],
  },
  PROCESS_MULTI: {
    body: 'postureCheckProcessMulti',
    sent: {
      semantic: 'AnyOf',
      processes: [
        { osType: 'Linux', path: '/bin/b', hashes: ['FF', 'aa'] },
        { osType: 'Linux', path: '/bin/a', signerFingerprints: ['00:11'] },
        { osType: 'Linux', path: '/bin/b', hashes: ['BB-00'] },
      ],
    },
    shown: {
      semantic: 'AnyOf',
      processes: [
        { osType: 'Linux', path: '/bin/a', hashes: [], signerFingerprints: ['0011'] },
        { osType: 'Linux', path: '/bin/b', hashes: ['bb00'], signerFingerprints: [] },
      ],
    },
    required: ['semantic', 'processes'],
  },
  DOMAIN: {
    body: 'postureCheckDomain',
    sent: { domains: ['b.example', 'A.example', 'b.example'] },
    shown: { domains: ['A.example', 'b.example'] },
    required: ['domains'],
  },
  MAC: {
    body: 'postureCheckMacAddress',
    sent: { macAddresses: ['aa:BB-0c', '00:11:22:33:44:55'] },
    shown: { macAddresses: ['001122334455', 'aabb0c'] },
    required: ['macAddresses'],
  },
  MFA: {
    body: 'postureCheckMfa',
    sent: { timeoutSeconds: 0, promptOnWake: true },
    shown: { timeoutSeconds: -1, promptOnWake: true, promptOnUnlock: false, ignoreLegacyEndpoints: false },
    required: [],
  },
} as const

const each = Object.entries(types).map(([typeId, type]) => ({ typeId, ...type }))
const make = (typeId: string, more: object = {}) => {
  const { sent } = types[typeId as keyof typeof types]
  return manage.make('posture-checks', { name: newName(), typeId, ...sent, ...more })
}

describe.each(each)('a posture check of the type $typeId', ({ typeId, body, sent, shown, required }) => {
  it('shows what it was made with, in the form that is compared', async () => {
    const id = await make(typeId, { roleAttributes: ['strict'] })

    const check = await manage.get(`/posture-checks/${id}`)

    expect(check).toMatchObject({ typeId, version: 1, roleAttributes: ['strict'], tags: {}, ...shown })
    expect(check._links).toEqual({ self: { href: `./posture-checks/${id}` } })
    for (const [member, value] of Object.entries(shown)) expect(check[member]).toEqual(value)
  })

  it('keeps its own members on a patch that does not name them', async () => {
    const id = await make(typeId)

    await manage.change('PATCH', `/posture-checks/${id}`, { roleAttributes: ['later'] })

    expect(await manage.get(`/posture-checks/${id}`)).toMatchObject({ roleAttributes: ['later'], ...shown })
  })

  it('takes its type on a replacement, and does without it', async () => {
    const id = await make(typeId)

    await manage.change('PUT', `/posture-checks/${id}`, { name: newName(), typeId, ...sent })
    await manage.change('PUT', `/posture-checks/${id}`, { name: newName(), ...sent })

    expect(await manage.get(`/posture-checks/${id}`)).toMatchObject(shown)
  })

  it.skipIf(required.length === 0).each([...required])('cannot be made or replaced without %s', async (member) => {
    const { [member]: _, ...others } = sent as Record<string, unknown>
    const id = await make(typeId)

    const onCreate = await manage.refusal('POST', '/posture-checks', { name: newName(), typeId, ...others })
    const onReplace = await manage.refusal('PUT', `/posture-checks/${id}`, { name: newName(), ...others })

    expect(onCreate).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: member })
    expect(onReplace).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: member })
  })

  it('is called as well by the names of its bodies in the public contract', async () => {
    const created = await manage.make('posture-checks', { name: newName(), ...sent, typeId: `${body}Create` })
    await manage.change('PUT', `/posture-checks/${created}`, { name: newName(), ...sent, typeId: `${body}Update` })
    await manage.change('PATCH', `/posture-checks/${created}`, { typeId: `${body}Patch`, roleAttributes: ['later'] })

    expect(await manage.get(`/posture-checks/${created}`)).toMatchObject({
      typeId,
      roleAttributes: ['later'],
      ...shown,
    })
    for (const name of [body, `${body}Delete`, 'Create'])
      expect(await manage.refusal('POST', '/posture-checks', { name: newName(), ...sent, typeId: name })).toMatchObject(
        {
          status: 400,
          field: 'typeId',
        },
      )
  })

  it('does not become another type', async () => {
    const other = typeId === 'MFA' ? 'DOMAIN' : 'MFA'
    const id = await make(typeId)

    const onReplace = await manage.refusal('PUT', `/posture-checks/${id}`, { name: newName(), typeId: other })
    const onPatch = await manage.refusal('PATCH', `/posture-checks/${id}`, { typeId: other })

    expect(onReplace).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'typeId' })
    expect(onPatch).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'typeId' })
    expect((await manage.get(`/posture-checks/${id}`)).typeId).toBe(typeId)
  })

  it('has no members of another type', async () => {
    const foreign = typeId === 'MAC' ? { domains: ['x'] } : { macAddresses: ['aa'] }

    const refused = await manage.refusal('POST', '/posture-checks', { name: newName(), typeId, ...sent, ...foreign })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: Object.keys(foreign)[0] })
  })
})

describe('posture checks', () => {
  it('need a type to be made', async () => {
    const refused = await manage.refusal('POST', '/posture-checks', { name: newName() })

    expect(refused).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'typeId' })
  })

  it.each(['MOON', 7, 'os', '__proto__'])('are of no type %s', async (typeId) => {
    const refused = await manage.refusal('POST', '/posture-checks', { name: newName(), typeId })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_PARSE_BODY', field: 'typeId' })
  })

  it.each([
    ['a system that does not exist', 'OS', { operatingSystems: [{ type: 'Plan9' }] }, 'operatingSystems.0.type'],
    ['no system', 'OS', { operatingSystems: [] }, 'operatingSystems'],
    ['a range with a tilde', 'OS', { operatingSystems: [{ type: 'Linux', versions: ['~1.2.3'] }] }, 'operatingSystems'],
    ['a range that is a word', 'OS', { operatingSystems: [{ type: 'Linux', versions: ['new'] }] }, 'operatingSystems'],
    ['half a version', 'OS', { operatingSystems: [{ type: 'Linux', versions: ['>=10'] }] }, 'operatingSystems'],
    ['no domain', 'DOMAIN', { domains: [] }, 'domains'],
    ['no address', 'MAC', { macAddresses: [] }, 'macAddresses'],
    ['an address that is none', 'MAC', { macAddresses: ['router'] }, 'macAddresses'],
    ['an address of separators', 'MAC', { macAddresses: ['::'] }, 'macAddresses'],
    ['a hash that is none', 'PROCESS', { process: { osType: 'Linux', path: '/a', hashes: ['xyz'] } }, 'process.hashes'],
    [
      'a fingerprint that is none',
      'PROCESS',
      { process: { osType: 'Linux', path: '/a', signerFingerprint: 'me' } },
      'process.signerFingerprint',
    ],
    ['a program without path', 'PROCESS', { process: { osType: 'Linux' } }, 'process.path'],
    [
      'a hash that is none among others',
      'PROCESS_MULTI',
      { processes: [{ osType: 'Linux', path: '/a', hashes: ['zz'] }] },
      'processes',
    ],
    ['no program', 'PROCESS_MULTI', { processes: [] }, 'processes'],
    ['no semantic there is', 'PROCESS_MULTI', { semantic: 'SomeOf' }, 'semantic'],
    ['more seconds than can be counted', 'MFA', { timeoutSeconds: 1e300 }, 'timeoutSeconds'],
  ])('refuse %s', async (_what, typeId, wrong, field) => {
    const { sent } = types[typeId as keyof typeof types]

    const refused = await manage.refusal('POST', '/posture-checks', { name: newName(), typeId, ...sent, ...wrong })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field })
  })

  it('patch the members of a process one by one', async () => {
    const id = await make('PROCESS')

    await manage.change('PATCH', `/posture-checks/${id}`, { process: { signerFingerprint: 'AA:11' } })
    await manage.change('PATCH', `/posture-checks/${id}`, { process: { path: '/bin/c' } })

    const { process } = await manage.get(`/posture-checks/${id}`)
    expect(process).toEqual({ osType: 'Linux', path: '/bin/c', hashes: ['abcd'], signerFingerprint: 'aa11' })
  })

  it('keep all processes on a patch of the semantic alone', async () => {
    const id = await make('PROCESS_MULTI')

    await manage.change('PATCH', `/posture-checks/${id}`, { semantic: 'AllOf' })

    const { semantic, processes } = await manage.get(`/posture-checks/${id}`)
    expect(semantic).toBe('AllOf')
    expect(processes).toHaveLength(2)
  })

  it('can be listed by what only some types have', async () => {
    const id = await make('MFA', { promptOnUnlock: true })

    const matches = await manage.get(`/posture-checks?filter=${encodeURIComponent('promptOnUnlock = true')}`)

    expect(matches.map((check: { id: string }) => check.id)).toEqual([id])
  })

  it('are found by the roles of a role filter', async () => {
    const name = newName()
    await make('DOMAIN', { name, roleAttributes: ['filtered', 'north'] })

    const matches = await manage.names(`/posture-checks?roleFilter=${encodeURIComponent('#filtered')}`)

    expect(matches).toEqual([name])
  })

  it('refuse to be deleted by callers who are not administrators with 403', async () => {
    const id = await make('DOMAIN')
    const { token } = await world.signIn()

    const response = await world.send({ method: 'DELETE', path: `/edge/management/v1/posture-checks/${id}`, token })

    expect(response.status).toBe(403)
    expect(response.body.error).toMatchObject({ code: 'FORBIDDEN', cause: { code: 'PERMISSION_DENIED' } })
  })

  it('leave the policies that name them', async () => {
    const id = await make('DOMAIN')
    const policy = await manage.make('service-policies', {
      name: newName(),
      type: 'Dial',
      semantic: 'AnyOf',
      postureCheckRoles: [`@${id}`, '#strict'],
    })

    await manage.change('DELETE', `/posture-checks/${id}`)

    expect((await manage.get(`/service-policies/${policy}`)).postureCheckRoles).toEqual(['#strict'])
  })
})

describe('posture check types', () => {
  it('are those that checks can be of', async () => {
    const matches = await manage.get('/posture-check-types')

    expect(matches.map(({ id }: { id: string }) => id).sort()).toEqual(Object.keys(types).sort())
    expect(matches.find(({ id }: { id: string }) => id === 'OS')).toMatchObject({
      name: 'Operating System Check',
      version: '1',
      operatingSystems: expect.arrayContaining([{ type: 'iOS', versions: ['11', '12'] }]),
    })
  })

  it('cannot be changed', async () => {
    const response = await manage.call('PATCH', '/posture-check-types/OS', { name: 'Other' })

    expect(response.status).toBe(405)
  })
})
