// Members of a body that the controller does not know, and ignores: the response names them, so that no value is lost in silence.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { ADMIN, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { KeptConnection } from '../world/kept-connection.ts'
import { newName } from '../world/names.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let connection: KeptConnection
let token: string
const env = cleanEnvironment()

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  connection = new KeptConnection({ url, rootPem })
  token = await world.admin()
  writeProfiles(env, { test: { url, rootPem, token } })
})
afterAll(async () => {
  connection.close()
})

interface Warning {
  readonly field: string
  readonly reason: string
}

/** The warnings of a request with the header of OpenZiti's clients. */
async function warningsOf(method: string, path: string, body: () => object): Promise<Warning[] | undefined> {
  const headers = { 'content-type': 'application/json', 'zt-session': token }
  const { status, text } = await connection.send({ method, path, headers, body: JSON.stringify(body()) })
  expect(status, text).toBe(method === 'POST' ? 201 : 200)
  return JSON.parse(text).meta.warnings
}

const fieldsOf = (warnings: Warning[] | undefined) => warnings?.map(({ field }) => field)

describe('a member of a body that is not known', () => {
  const signer = () => ({
    name: newName('signer'),
    issuer: newName('issuer'),
    audience: 'a',
    enabled: true,
    jwksEndpoint: 'https://issuer.example/keys',
  })
  it.each<[string, string, () => object, readonly string[]]>([
    ['a misspelt one', 'services', () => ({ name: newName('s'), encryptionRequired: true, bogus: 1 }), ['bogus']],
    [
      'who may enroll by a signer',
      'external-jwt-signers',
      () => ({ ...signer(), enrollToCertEnabled: true, enrollNameClaimsSelector: '/sub' }),
      ['enrollToCertEnabled', 'enrollNameClaimsSelector'],
    ],
    [
      'the listeners of a router',
      'edge-routers',
      () => ({ name: newName('router'), ctrlChanListeners: { 'tls:ctrl': [] } }),
      ['ctrlChanListeners'],
    ],
    [
      'one inside another',
      'identities',
      () => ({ ...identity(), enrollment: { ott: true, ottNever: false } }),
      ['enrollment.ottNever'],
    ],
  ])('is named in a warning: %s', async (_what, plural, body, fields) => {
    const warnings = await warningsOf('POST', `${MANAGEMENT}/${plural}`, body)

    expect(warnings).toEqual(fields.map((field) => ({ field, reason: 'is not known here, and was ignored' })))
  })

  const identity = () => ({ name: newName('laptop'), type: 'Device', isAdmin: false })

  it('is named in a change as in a new record', async () => {
    const { id } = await world.signIn()

    const warnings = await warningsOf('PATCH', `${MANAGEMENT}/identities/${id}`, () => ({ bogus: true }))

    expect(fieldsOf(warnings)).toEqual(['bogus'])
  })

  it('is named by the client API too, and before a session is known', async () => {
    const response = await world.send({
      method: 'POST',
      path: `${CLIENT}/authenticate?method=password`,
      body: { ...ADMIN, bogus: true },
    })

    expect(fieldsOf(response.body.meta.warnings)).toEqual(['bogus'])
  })

  it('is named without its value, at a bounded length, and for a bounded number of members', async () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${'x'.repeat(900)}${at}`, 'swordfish']))

    const warnings = await warningsOf('POST', `${MANAGEMENT}/identities`, () => ({ ...identity(), ...many }))

    expect(warnings).toHaveLength(10)
    expect(JSON.stringify(warnings)).not.toContain('swordfish')
    for (const { field } of warnings ?? []) expect(field.length).toBeLessThan(250)
  })
})

describe('no warning', () => {
  it('is sent for a body whose members are all known', async () => {
    expect(
      await warningsOf('POST', `${MANAGEMENT}/services`, () => ({ name: newName('s'), encryptionRequired: true })),
    ).toBe(undefined)
  })

  it.each(['identities', 'edge-routers', 'services', 'service-policies', 'auth-policies', 'config-types'])(
    'is sent for a record of %s that is sent back as it was read',
    async (plural) => {
      const members: Record<string, object> = {
        identities: { type: 'Device', isAdmin: false },
        services: { encryptionRequired: true },
        'service-policies': { type: 'Dial', semantic: 'AnyOf' },
      }
      const path = `${MANAGEMENT}/${plural}`
      const headers = { 'zt-session': token }
      if (!['auth-policies'].includes(plural))
        await world.send({ method: 'POST', path, headers, body: { name: newName('record'), ...members[plural] } })
      const list = await world.send({
        method: 'GET',
        path: `${path}?sort=createdAt desc`.replaceAll(' ', '%20'),
        headers,
      })
      const [record] = list.body.data

      expect(await warningsOf('PATCH', `${path}/${record.id}`, () => record)).toBe(undefined)
    },
  )
})

it('the command line prints a warning to stderr, and the result to stdout', async () => {
  const body = JSON.stringify({ name: newName('laptop'), type: 'Device', isAdmin: false, bogus: true })

  const { code, stdout, stderr } = await commandLine(
    ['api', 'POST', '/identities', '--header', `zt-session: ${token}`, '--data', body],
    env,
  )

  expect(code).toBe(0)
  expect(JSON.parse(stdout).data.id).toMatch(/^\w+$/)
  expect(stderr).toBe('Warning: bogus is not known here, and was ignored\n')
})
