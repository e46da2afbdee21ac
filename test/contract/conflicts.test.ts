// The deletions that are refused because of other records: each that the documents declare as 409, by a request that is refused so.
import { beforeAll, describe, expect, it } from 'vitest'
import { buildOpenApiDocument } from '../../server/openapi/openapi.ts'
import { operations } from '../../server/operations/operations.ts'
import { issue, registerAuthority } from '../world/authorities.ts'
import { type Management, managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let people: People

beforeAll(async () => {
  manage = await managementOf(world)
  people = await People.in(world)
})

let sequence = 0
const newName = () => `in use ${++sequence}`
const make = (plural: string, body: object) => manage.make(plural, { name: newName(), ...body })
const makeIdentity = (more: object = {}) => make('identities', { type: 'Device', isAdmin: true, ...more })
const makeSigner = () => {
  const issuer = `https://${newName().replaceAll(' ', '-')}.example`
  return make('external-jwt-signers', { issuer, audience: 'a', enabled: true, jwksEndpoint: `${issuer}/keys` })
}
const makeConfigType = () => make('config-types', {})

async function makePolicy(requireExtJwtSigner: string | null = null): Promise<string> {
  const { primary } = await manage.get('/auth-policies/default')
  const secondary = { requireTotp: false, ...(requireExtJwtSigner ? { requireExtJwtSigner } : {}) }
  return make('auth-policies', { primary, secondary })
}

const allowSignIn = (allowed: boolean) =>
  manage.change('PATCH', '/auth-policies/default', { primary: { updb: { allowed }, cert: { allowed } } })

/** An edge router whose identity administers. */
async function makeAdministeringRouter(): Promise<string> {
  const id = await make('edge-routers', { isTunnelerEnabled: true })
  await manage.change('PATCH', `/identities/${id}`, { isAdmin: true })
  return id
}

/** By operation: makes a record that cannot be deleted, and returns its id. */
const refused: Readonly<Record<string, () => Promise<string>>> = {
  'DELETE /auth-policies/{id}': async () => {
    const id = await makePolicy()
    await makeIdentity({ authPolicyId: id })
    return id
  },
  'DELETE /config-types/{id}': async () => {
    const id = await makeConfigType()
    await make('configs', { configTypeId: id, data: {} })
    return id
  },
  'DELETE /configs/{id}': async () => {
    const id = await make('configs', { configTypeId: await makeConfigType(), data: {} })
    await make('services', { encryptionRequired: true, configs: [id] })
    return id
  },
  'DELETE /controller-settings/{id}': async () => 'global',
  'DELETE /controller-settings/{id}/effective': async () => 'global',
  'DELETE /external-jwt-signers/{id}': async () => {
    const id = await makeSigner()
    await makePolicy(id)
    return id
  },
  // From here on no administrator could sign in after the deletion.
  'DELETE /identities/{id}': () => makeIdentity(),
  'DELETE /authenticators/{id}': async () =>
    manage.make('authenticators', {
      identityId: await makeIdentity(),
      method: 'updb',
      username: newName(),
      password: 'correct horse battery',
    }),
  'DELETE /cas/{id}': async () => {
    const authority = await registerAuthority(people)
    const { pem: certPem } = await issue(`CN=${newName()}`, authority)
    await manage.make('authenticators', { identityId: await makeIdentity(), method: 'cert', certPem })
    return authority.id
  },
  'DELETE /edge-routers/{id}': makeAdministeringRouter,
  'DELETE /routers/{id}': makeAdministeringRouter,
  'DELETE /transit-routers/{id}': makeAdministeringRouter,
}

const declared = (['client', 'management', 'fabric'] as const).flatMap((api) =>
  Object.entries(buildOpenApiDocument(api, operations).paths).flatMap(([path, methods]) => {
    const { delete: deletion } = methods as { delete?: { responses: object } }
    return deletion && '409' in deletion.responses ? [[api, `DELETE ${path}`] as const] : []
  }),
)

/** Concerns no record. */
const OF_CONTROLLER = '/controller/nodes/{name}'

describe('a deletion', () => {
  it('declares a conflict only where a request is refused so', () => {
    const others = declared.filter(([, name]) => name !== `DELETE ${OF_CONTROLLER}`)
    expect(others.filter(([api, name]) => api !== 'management' || !(name in refused))).toEqual([])
    expect(Object.keys(refused).filter((name) => !declared.some(([, other]) => other === name))).toEqual([])
  })

  it('of a controller is refused while there are no others', async () => {
    expect(await manage.refusal('DELETE', OF_CONTROLLER.replace('{name}', 'another'))).toMatchObject({ status: 409 })
  })

  it.each(Object.entries(refused))('by %s is refused while another record needs the record', async (name, prepare) => {
    await allowSignIn(true)
    const path = name.replace('DELETE ', '').replace('{id}', await prepare())
    // The session of the caller lasts, and no administrator could sign in anew.
    await allowSignIn(false)

    const refusal = await manage.refusal('DELETE', path)

    expect(refusal).toMatchObject({ status: 409 })
  })
})
