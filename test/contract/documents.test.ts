// The OpenAPI documents as documents: valid, complete in themselves, and never contradicted by what is sent.
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { dataResponse } from '../../server/api/responses.ts'
import { buildOpenApiDocument, renderOpenApiDocument } from '../../server/openapi/openapi.ts'
import { operations } from '../../server/operations/operations.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { takeContradictions } from '../world/faults.ts'
import { withoutReferences } from './contract-facts.ts'

const APIS = ['client', 'management', 'fabric'] as const

type Part = Readonly<Record<string, unknown>>

/** Every object of a document, with the path at which it stands. */
function partsOf(part: unknown, path = ''): (readonly [path: string, part: Part])[] {
  if (typeof part !== 'object' || part === null) return []
  const inside = Object.entries(part).flatMap(([key, value]) => partsOf(value, `${path}/${key}`))
  return Array.isArray(part) ? inside : [[path, part as Part], ...inside]
}

describe.each(APIS)('the document of the %s API', (api) => {
  const document = JSON.parse(renderOpenApiDocument(api, operations).toString())
  const parts = partsOf(document)

  it('is valid OpenAPI 3.0.3', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))

    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(document.openapi).toBe('3.0.3')
  })

  // Rules of the specification that its schema does not check.
  it('says of what each array is a list', () => {
    expect(parts.filter(([, { type, items }]) => type === 'array' && !items).map(([path]) => path)).toEqual([])
  })

  it('allows null only beside one type, and among the values where those are listed', () => {
    const wrong = parts.filter(
      ([, { nullable, type, enum: values }]) =>
        nullable === true && (typeof type !== 'string' || (Array.isArray(values) && !values.includes(null))),
    )

    expect(wrong.map(([path]) => path)).toEqual([])
  })

  it('refers only to components that it has, and has none that nothing refers to', () => {
    const referred = parts.flatMap(([, { $ref }]) => ($ref ? [String($ref).replace('#/components/schemas/', '')] : []))

    expect([...new Set(referred)].sort()).toEqual(Object.keys(document.components.schemas).sort())
  })

  it('names both headers in which a session can be sent, and sign-in by OpenID Connect', () => {
    const { oauth2, ...headers } = document.components.securitySchemes
    const names = Object.values(headers as Record<string, { name: string }>).map(({ name }) => name)

    expect(names.sort()).toEqual(['net-session', 'zt-session'])
    expect(oauth2).toMatchObject({
      type: 'oauth2',
      flows: { authorizationCode: { authorizationUrl: '/oidc/authorize', tokenUrl: '/oidc/oauth/token' } },
    })
    for (const [, { security, 'x-permission': permission }] of parts.filter(([, part]) => part['x-permission'])) {
      expect([permission, security]).toEqual([
        permission,
        [{ 'net-session': [] }, { 'zt-session': [] }, { oauth2: [] }],
      ])
    }
  })

  it('describes the four members of the meta of a list', () => {
    const { meta, pageMeta } = document.components.schemas

    expect(Object.keys(meta.properties)).toEqual(['apiEnrollmentVersion', 'apiVersion', 'warnings'])
    expect(meta.required).toEqual(['apiEnrollmentVersion', 'apiVersion'])
    expect(Object.keys(pageMeta.properties)).toEqual([
      'apiEnrollmentVersion',
      'apiVersion',
      'filterableFields',
      'pagination',
    ])
    expect(Object.keys(pageMeta.properties.pagination.properties)).toEqual(['limit', 'offset', 'totalCount'])
  })

  it('declares no JSON as text', () => {
    const asText = parts.filter(
      ([path, { schema }]) => path.endsWith('/application~1json') && (schema as Part | undefined)?.type === 'string',
    )

    expect(asText).toEqual([])
  })
})

describe('the kinds of a posture check', () => {
  const { components } = JSON.parse(renderOpenApiDocument('management', operations).toString())

  it.each(['postureCheck', 'createPostureCheck'])('of the schema %s are told apart by one member', (name) => {
    const { oneOf, discriminator } = components.schemas[name]
    const kinds = oneOf.map(({ $ref }: { $ref: string }) => {
      const { properties, required } = components.schemas[$ref.split('/').at(-1) ?? '']
      expect(required).toContain('typeId')
      return [properties.typeId.enum, $ref]
    })

    expect(discriminator).toEqual({
      propertyName: 'typeId',
      mapping: Object.fromEntries(kinds.map(([[typeId], $ref]: [[string], string]) => [typeId, $ref])),
    })
  })
})

describe('a token', () => {
  const schemaAt = (api: (typeof APIS)[number], path: string) => {
    const document = buildOpenApiDocument(api, operations)
    return path
      .split(' ')
      .reduce<unknown>(
        (part, key) => (part as Part | undefined)?.[key],
        withoutReferences(document, document.components.schemas),
      )
  }
  const record = (path: string, member: string) =>
    `paths ${path} get responses 200 content application/json schema properties data properties ${member}`

  it.each([
    ['management', record('/enrollments/{id}', 'token')],
    ['management', record('/edge-routers/{id}', 'enrollmentToken')],
    ['management', record('/routers/{id}', 'enrollmentToken')],
    ['management', record('/identities/{id}', 'enrollment properties ott properties token')],
    ['management', record('/identities/{id}', 'enrollment properties updb properties token')],
    ['client', 'paths /enroll post parameters 0 schema'],
    ['client', 'paths /enroll/updb post parameters 0 schema'],
    ['client', 'paths /enroll/ott post requestBody content application/json schema properties token'],
  ] as const)('of the %s API is a UUID: %s', (api, path) => {
    expect(schemaAt(api, path)).toMatchObject({ type: 'string', format: 'uuid' })
  })
})

describe('a response that contradicts its document', () => {
  const [listVersion] = operations.filter(({ id }) => id === 'listVersion')

  it.each([
    [
      'by a member of another type',
      () => dataResponse({ version: 7 }),
      [/\/data\/version must be string/, /the public contract: data\.version must be string/],
    ],
    ['by a member that is not described', () => dataResponse({ surprise: true }), [/additional properties.*surprise/]],
    ['by a status that is not named', () => dataResponse({}, { status: 418 }), [/does not name the status/]],
    [
      'by another content type',
      () => ({ status: 200, contentType: 'text/plain', body: '' }),
      [/content type text\/plain/],
    ],
  ])('fails the test that receives it: %s', async (_how, run, differences) => {
    const world = await testController({ operations: [{ ...listVersion!, run }] })

    await world.send({ method: 'GET', path: `${CLIENT}/version` })

    expect(takeContradictions()).toEqual(differences.map((difference) => expect.stringMatching(difference)))
    await world.close()
  })

  it('is found in a streamed list, too', async () => {
    const world = await testController()
    const token = await world.admin()

    const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/identities?limit=-1`, token })

    expect(response.body.meta.pagination.limit).toBe(-1)
    expect(takeContradictions()).toEqual([])
    await world.close()
  })
})
