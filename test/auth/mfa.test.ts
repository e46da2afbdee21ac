// The second factor: enrolled by an app, passed by its codes and by recovery codes, each once, and removed.
import { beforeAll, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { loadSecretCipher } from '../../src/storage/secrets/key-files.ts'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { type Base, MfaPeople, MfaSession, outcome, toCodeHeader, WRONG } from '../world/mfa.ts'
import { People, type Person } from '../world/people.ts'
import { download, readPng, readQrCode } from '../world/qr-code.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let mfa: MfaPeople

beforeAll(async () => {
  people = await People.in(world)
  mfa = new MfaPeople(world, people)
})

const signIn = (person: Person, base: Base = CLIENT) => mfa.signIn(person, { base })
const enrolled = (values: Record<string, unknown> = {}, base: Base = CLIENT) => mfa.enrolled(values, { base })

type Enrolled = Awaited<ReturnType<typeof enrolled>>

const now = () => world.clock.now()

describe.each([
  ['client', CLIENT],
  ['management', MANAGEMENT],
] as const)('an enrollment over the %s API', (_name, base) => {
  it('goes from none to unverified to verified to none', async () => {
    const person = await people.person()
    const session = await signIn(person, base)
    const isEnabled = async () => (await people.manage('GET', `/identities/${person.id}`)).isMfaEnabled

    expect(outcome(await session.show())).toEqual([404, 'NOT_FOUND'])
    const started = await session.start()
    expect([started.status, started.body.data._links.self.href]).toEqual([201, './current-identity/mfa'])
    const unverified = (await session.show()).body.data
    expect(unverified).toMatchObject({ id: started.body.data.id, isVerified: false, tags: {} })
    expect(Object.keys(unverified._links).sort()).toEqual(['current-identity', 'qr', 'self', 'verify'])
    expect(await isEnabled()).toBe(false)

    const device = await session.app()
    expect(outcome(await session.verify(device.code(now())))).toBe(200)
    const verified = (await session.show()).body.data
    expect(verified).toMatchObject({ id: unverified.id, isVerified: true, recoveryCodes: [] })
    expect(verified).not.toHaveProperty('provisioningUrl')
    expect(Object.keys(verified._links).sort()).toEqual(['current-identity', 'recovery-codes', 'self'])
    expect(await isEnabled()).toBe(true)

    world.clock.advance(STEP_MS)
    expect(outcome(await session.remove(device.code(now())))).toBe(200)
    expect(outcome(await session.show())).toEqual([404, 'NOT_FOUND'])
    expect(await isEnabled()).toBe(false)
  })

  it('makes its session complete, and later ones partial until they send a code', async () => {
    const { person, session, device } = await enrolled({}, base)

    expect(await session.own()).toMatchObject({ isMfaRequired: true, isMfaComplete: true, authQueries: [] })
    const later = await signIn(person, base)
    expect(await later.own()).toMatchObject({ isMfaRequired: true, isMfaComplete: false })
    expect(await later.isFull()).toBe(false)

    expect(outcome(await later.pass(device.code(now())))).toBe(200)

    expect(await later.own()).toMatchObject({ isMfaRequired: true, isMfaComplete: true, authQueries: [] })
    expect(await later.isFull()).toBe(true)
  })
})

describe('the provisioning URL', () => {
  it('names the controller and the identity, with 20 bytes of secret', async () => {
    const session = await signIn(await people.person({ name: 'Ada: the "first" & only/ü' }))
    await session.start()

    const device = await session.app()

    expect(device).toMatchObject({ issuer: '127.0.0.1', label: '127.0.0.1:Ada  the "first" & only/ü', secretBytes: 20 })
  })

  it('names the controller as the settings say, and shortens long names', async () => {
    const world = await testController({ settings: { 'totp.issuer': 'Work & Co' } })
    const { token } = await world.signIn({ name: '👩‍💻'.repeat(200) })
    const session = new MfaSession(world, token)
    await session.start()

    const device = await session.app()

    expect(device.issuer).toBe('Work & Co')
    expect([...device.label].length).toBe('Work & Co:'.length + 64)
    expect((await session.send('GET', '/current-identity/mfa/qr-code')).status).toBe(200)
    await world.close()
  })

  it('is in the QR code, as a PNG of 256 pixels, until it is verified', async () => {
    const person = await people.person()
    const session = await signIn(person)
    const qrCode = () => session.send('GET', '/current-identity/mfa/qr-code')
    const none = await qrCode()
    await session.start()
    const { provisioningUrl } = (await session.show()).body.data
    const { url, rootPem } = await world.listen()
    // An SDK that accepts JSON only reads the image all the same.
    const headers = { 'net-session': session.token, accept: 'application/json' }

    const { contentType, bytes } = await download(`${url}${CLIENT}/current-identity/mfa/qr-code`, rootPem, headers)
    const image = readPng(bytes)

    expect([contentType, image.width, image.height]).toEqual(['image/png', 256, 256])
    expect(readQrCode(image)).toBe(provisioningUrl)
    await session.verify(new AuthenticatorApp(provisioningUrl).code(now()))
    for (const response of [none, await qrCode()]) expect(outcome(response)).toEqual([404, 'NOT_FOUND'])
  })
})

describe('a code', () => {
  it.each([
    ['two steps early', 2, WRONG],
    ['one step early', 1, 200],
    ['of now', 0, 200],
    ['one step late', -1, 200],
    ['two steps late', -2, WRONG],
  ])('%s is accepted as the window says', async (_what, steps, expected) => {
    const { person, device } = await enrolled()
    world.clock.advance(5 * STEP_MS)
    const session = await signIn(person)

    expect(outcome(await session.pass(device.code(now() + steps * STEP_MS)))).toEqual(expected)
  })

  it('is accepted in a wider window if the settings say so, or only in its own step', async () => {
    for (const [window, steps, expected] of [
      [3, -3, 200],
      [3, 4, WRONG],
      [0, 0, 200],
      [0, 1, WRONG],
    ] as const) {
      const world = await testController({ settings: { 'totp.window': window } })
      const session = new MfaSession(world, (await world.signIn()).token)
      await session.start()
      const device = await session.app()

      expect(outcome(await session.verify(device.code(world.clock.now() + steps * STEP_MS)))).toEqual(expected)
      await world.close()
    }
  })

  it('is accepted once, also while it is in the window, by whatever operation', async () => {
    const { person, session, device } = await enrolled()
    const code = device.code(now())
    const later = await signIn(person)

    expect(outcome(await later.pass(code))).toBe(200)

    const another = await signIn(person)
    expect(outcome(await another.pass(code))).toEqual(WRONG)
    expect(outcome(await session.recoveryCodes(code))).toEqual(WRONG)
    expect(outcome(await session.replaceCodes(code))).toEqual(WRONG)
    expect(outcome(await session.remove(code))).toEqual(WRONG)
    expect(await another.isFull()).toBe(false)
  })

  it('that verified the enrollment is not accepted again', async () => {
    const person = await people.person()
    const session = await signIn(person)
    await session.start()
    const device = await session.app()
    const code = device.code(now())
    await session.verify(code)

    expect(outcome(await (await signIn(person)).pass(code))).toEqual(WRONG)
  })

  it('of a step before the last accepted one is not accepted', async () => {
    const { person, device } = await enrolled()
    world.clock.advance(5 * STEP_MS)
    const session = await signIn(person)

    expect(outcome(await session.pass(device.code(now() + STEP_MS)))).toBe(200)

    expect(outcome(await session.pass(device.code(now())))).toEqual(WRONG)
  })

  it('is not accepted again after a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const person = await people.person()
    const session = new MfaSession(world, await people.sessionOf(person))
    await session.start()
    const device = await session.app()
    const code = device.code(world.clock.now())
    await session.verify(code)
    const partial = await people.sessionOf(person)
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })

    expect(outcome(await new MfaSession(again, partial).pass(code))).toEqual(WRONG)
    world.clock.advance(STEP_MS)
    const next = device.code(world.clock.now())
    expect(outcome(await new MfaSession(again, partial).pass(next))).toBe(200)
    await again.close()
  })

  it('is accepted for one of two requests at the same moment', async () => {
    const { person, device } = await enrolled()
    const code = device.code(now())
    const sessions = [await signIn(person), await signIn(person), await signIn(person)]

    const responses = await Promise.all(sessions.map((session) => session.pass(code)))

    expect(responses.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  })

  it('for another identity is wrong', async () => {
    const [one, other] = [await enrolled(), await enrolled()]
    const session = await signIn(one.person)

    expect(outcome(await session.pass(other.device.code(now())))).toEqual(WRONG)
    expect(outcome(await session.pass(other.recoveryCodes[0] ?? ''))).toEqual(WRONG)
  })

  it.each(['', ' ', '12345', '1234567', '١٢٣٤٥٦', '12345６', '-12345', '1e5000', 'null', 'x'.repeat(7_000)])(
    '%j is wrong',
    async (code) => {
      const { person } = await enrolled()

      expect(outcome(await (await signIn(person)).pass(code))).toEqual(WRONG)
    },
  )

  it.each([
    ['is required', {}],
    ['is not a number', { code: 123456 }],
    ['is not null', { code: null }],
  ])('%s in a body, or it is refused with 400', async (_what, body) => {
    const { session } = await enrolled()

    for (const path of ['/authenticate/mfa', '/current-identity/mfa/verify', '/current-identity/mfa/recovery-codes']) {
      const { status } = await session.send('POST', path, body)
      expect([path, status]).toEqual([path, 400])
    }
  })

  it('is refused with 400 to clients of the peer, 401 to others, under one error code', async () => {
    const { person, device } = await enrolled()
    const { token } = await signIn(person)
    const body = { code: device.wrongCode(now()) }
    const path = `${CLIENT}/authenticate/mfa`

    const peer = await world.send({ method: 'POST', path, body, headers: { 'zt-session': token } })
    const native = await world.send({ method: 'POST', path, body, headers: { 'net-session': token } })

    expect([outcome(peer), outcome(native)]).toEqual([[400, 'MFA_INVALID_TOKEN'], WRONG])
  })
})

describe('a session of an identity without a verified enrollment', () => {
  it('cannot pass a second factor', async () => {
    const session = await signIn(await people.person())
    expect(outcome(await session.pass('123456'))).toEqual([409, 'MFA_NOT_ENROLLED'])
    await session.start()
    const { provisioningUrl, recoveryCodes } = (await session.show()).body.data

    const code = new AuthenticatorApp(provisioningUrl).code(now())

    expect(outcome(await session.pass(code))).toEqual([409, 'MFA_NOT_ENROLLED'])
    expect(outcome(await session.pass(recoveryCodes[0]))).toEqual([409, 'MFA_NOT_ENROLLED'])
    expect((await session.own()).isMfaComplete).toBe(false)
  })

  it('finds nothing to verify, remove or recover', async () => {
    const session = await signIn(await people.person())
    const none = [404, 'NOT_FOUND']

    for (const response of [
      await session.verify('123456'),
      await session.remove(),
      await session.recoveryCodes('123456'),
      await session.replaceCodes('123456'),
    ])
      expect(outcome(response)).toEqual(none)
    await session.start()
    expect(outcome(await session.recoveryCodes('123456'))).toEqual(none)
    expect(outcome(await session.replaceCodes('123456'))).toEqual(none)
  })

  it('removes an unverified enrollment without a code, or with any', async () => {
    const session = await signIn(await people.person())

    for (const code of [undefined, '', 'nonsense']) {
      await session.start()
      expect(outcome(await session.remove(code))).toBe(200)
    }
  })
})

describe('starting an enrollment', () => {
  it('is refused if there is an enrollment that is verified, or was started by the same session', async () => {
    const { session } = await enrolled()
    const other = await signIn(await people.person())
    await other.start()

    for (const each of [session, other]) expect(outcome(await each.start())).toEqual([409, 'MFA_EXISTS'])
  })

  it('creates one enrollment, however many requests come at once', async () => {
    const session = await signIn(await people.person())

    const responses = await Promise.all([session.start(), session.start(), session.start()])

    expect(responses.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  it('again makes another secret and other recovery codes', async () => {
    const session = await signIn(await people.person())
    await session.start()
    const first = (await session.show()).body.data
    await session.remove()
    await session.start()

    const second = (await session.show()).body.data

    expect(second.provisioningUrl).not.toBe(first.provisioningUrl)
    expect(second.recoveryCodes).not.toEqual(first.recoveryCodes)
  })
})

describe('verifying an enrollment', () => {
  it('takes no recovery code, no wrong code, and no second time', async () => {
    const session = await signIn(await people.person())
    await session.start()
    const { provisioningUrl, recoveryCodes } = (await session.show()).body.data
    const device = new AuthenticatorApp(provisioningUrl)

    for (const code of [recoveryCodes[0], device.wrongCode(now()), '']) {
      expect(outcome(await session.verify(code))).toEqual(WRONG)
    }
    expect((await session.show()).body.data.isVerified).toBe(false)
    expect(outcome(await session.verify(device.code(now())))).toBe(200)
    world.clock.advance(STEP_MS)
    expect(outcome(await session.verify(device.code(now())))).toEqual([404, 'NOT_FOUND'])
  })
})

describe('recovery codes', () => {
  it('are twenty, all different, of six characters', async () => {
    const { recoveryCodes } = await enrolled()

    expect(new Set(recoveryCodes).size).toBe(20)
    for (const code of recoveryCodes) expect(code).toMatch(/^[A-Z2-7]{6}$/)
  })

  it('pass the second factor once each, in their own case', async () => {
    const { person, recoveryCodes } = await enrolled()
    const [code = ''] = recoveryCodes
    const session = await signIn(person)

    expect(outcome(await session.pass(code.toLowerCase() === code ? 'x' : code.toLowerCase()))).toEqual(WRONG)
    expect(outcome(await session.pass(code))).toBe(200)
    expect(await session.isFull()).toBe(true)
    expect(outcome(await (await signIn(person)).pass(code))).toEqual(WRONG)
  })

  it('are shown for a code of the app, in the header or in the body, without those that were used', async () => {
    const { person, session, device, recoveryCodes } = await enrolled()
    const [used = '', ...others] = recoveryCodes
    await (await signIn(person)).pass(used)

    const byHeader = await session.recoveryCodes(device.code(now()))
    world.clock.advance(STEP_MS)
    const body = { code: device.code(now()) }
    const byBody = await session.send('GET', '/current-identity/mfa/recovery-codes', body, toCodeHeader('wrong'))

    for (const { status, body } of [byHeader, byBody]) {
      expect([status, body.data.recoveryCodes]).toEqual([200, others])
      expect(Object.keys(body.data).sort()).toEqual(['_links', 'createdAt', 'id', 'recoveryCodes', 'tags', 'updatedAt'])
    }
  })

  it('are not shown without a code, for a wrong one, or for a recovery code', async () => {
    const { session, device, recoveryCodes } = await enrolled()

    for (const code of [undefined, '', device.wrongCode(now()), recoveryCodes[0]]) {
      expect(outcome(await session.recoveryCodes(code))).toEqual(WRONG)
    }
  })

  it.each(['a code of the app', 'a recovery code'])('are all replaced for %s', async (what) => {
    const { person, session, device, recoveryCodes } = await enrolled()
    const code = what === 'a recovery code' ? (recoveryCodes[3] ?? '') : device.code(now())

    const replaced = await session.replaceCodes(code)
    world.clock.advance(STEP_MS)
    const { data } = (await session.recoveryCodes(device.code(now()))).body

    expect([replaced.status, replaced.body.data]).toEqual([200, {}])
    expect(data.recoveryCodes.filter((code: string) => recoveryCodes.includes(code))).toEqual([])
    expect(new Set(data.recoveryCodes).size).toBe(20)
    expect(outcome(await (await signIn(person)).pass(recoveryCodes[5] ?? ''))).toEqual(WRONG)
    expect(outcome(await (await signIn(person)).pass(data.recoveryCodes[5]))).toBe(200)
  })

  it('are replaced and shown by one request, for one code', async () => {
    const { session, device, recoveryCodes } = await enrolled()
    const path = '/controller/mfa/recovery-codes'

    const refused = await session.send('POST', path, { code: device.wrongCode(now()) })
    const { status, body } = await session.send('POST', path, { code: device.code(now()) })

    expect(outcome(refused)).toEqual(WRONG)
    expect(status).toBe(200)
    expect(body.data.recoveryCodes).toHaveLength(20)
    expect(body.data.recoveryCodes).not.toEqual(recoveryCodes)
  })

  it('are used up by requests at the same moment, each for one', async () => {
    const { person, recoveryCodes } = await enrolled()
    const [one = '', two = ''] = recoveryCodes
    const sessions = await Promise.all([1, 2, 3, 4].map(() => signIn(person)))

    const codes = [one, one, two, two]
    const responses = await Promise.all(sessions.map((session, at) => session.pass(codes[at] ?? '')))

    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 401, 401])
  })
})

describe('removing a second factor', () => {
  it('requires a code of the app or a recovery code', async () => {
    const [one, other] = [await enrolled(), await enrolled()]

    for (const code of [undefined, '', one.device.wrongCode(now())]) {
      expect(outcome(await one.session.remove(code))).toEqual(WRONG)
    }
    expect(outcome(await one.session.remove(one.device.code(now())))).toBe(200)
    expect(outcome(await other.session.remove(other.recoveryCodes[0]))).toBe(200)
    expect(await (await signIn(one.person)).isFull()).toBe(true)
  })

  const ways = [
    ['by its owner', async ({ session, device }: Enrolled) => outcome(await session.remove(device.code(now())))],
    [
      'by an administrator',
      async ({ person }: Enrolled) => (await people.ask('DELETE', `/identities/${person.id}/mfa`)).status,
    ],
  ] as const

  it.each(ways)('%s makes sessions that passed it like new ones of an identity without it', async (_who, remove) => {
    const one = await enrolled()
    const { id } = await one.session.own()

    expect(await remove(one)).toBe(200)

    expect(await one.session.own()).toMatchObject({ isMfaRequired: false, isMfaComplete: false, authQueries: [] })
    expect(world.controller.auth.apiSessions.get(id)?.mfaPassedAt).toBeNull()
    expect(await one.session.isFull()).toBe(true)
  })

  it.each(ways)('%s makes sessions partial that passed it, if their auth policy requires it', async (_who, remove) => {
    const one = await enrolled({ authPolicyId: await people.policy({ requireTotp: true }) })
    const { session } = one
    const listServices = () => session.send('GET', '/services')
    expect((await listServices()).status).toBe(200)

    expect(await remove(one)).toBe(200)

    const refused = await listServices()
    expect([refused.status, refused.body.error.cause.code]).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
    expect(await session.own()).toMatchObject({
      isMfaRequired: true,
      isMfaComplete: false,
      authQueries: [{ typeId: 'MFA' }],
    })
    // The way on is another enrollment, which partial sessions may make.
    expect((await session.start()).status).toBe(201)
    expect((await session.verify((await session.app()).code(now()))).status).toBe(200)
    expect((await listServices()).status).toBe(200)
  })

  it('makes sessions partial once their auth policy requires a factor afterwards', async () => {
    const authPolicyId = await people.policy({ requireTotp: true })
    const { person, session, device } = await enrolled()
    await session.remove(device.code(now()))

    await people.manage('PATCH', `/identities/${person.id}`, { authPolicyId })

    expect(await session.isFull()).toBe(false)
  })

  it('by an administrator takes no code, and leaves a partial session partial', async () => {
    const { person, session } = await enrolled()
    const partial = await signIn(person)

    expect((await people.ask('DELETE', `/identities/${person.id}/mfa`)).status).toBe(200)

    expect(outcome(await session.show())).toEqual([404, 'NOT_FOUND'])
    expect(await partial.isFull()).toBe(false)
    expect(outcome(await partial.pass('123456'))).toEqual([409, 'MFA_NOT_ENROLLED'])
    expect(await (await signIn(person)).isFull()).toBe(true)
  })

  it('by an administrator succeeds if there is nothing to remove, and not for an unknown identity', async () => {
    const { id } = await people.person()

    expect((await people.ask('DELETE', `/identities/${id}/mfa`)).status).toBe(200)
    expect((await people.ask('DELETE', '/identities/nothing/mfa')).status).toBe(404)
  })

  it('of another identity is for administrators', async () => {
    const { person } = await enrolled()
    const { token } = await world.signIn()

    const path = `${MANAGEMENT}/identities/${person.id}/mfa`
    const refused = await world.send({ method: 'DELETE', path, token })

    expect([refused.status, refused.body.error.cause.code]).toEqual([401, 'PERMISSION_DENIED'])
    expect((await people.manage('GET', `/identities/${person.id}`)).isMfaEnabled).toBe(true)
  })
})

describe('a partial session', () => {
  it('can enroll what its auth policy requires, and is complete then', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ requireTotp: true }) })
    const session = await signIn(person)
    expect(await session.isFull()).toBe(false)

    expect((await session.start()).status).toBe(201)
    expect((await session.send('GET', '/current-identity/mfa/qr-code')).status).toBe(200)
    expect((await session.verify((await session.app()).code(now()))).status).toBe(200)

    expect(await session.isFull()).toBe(true)
  })

  it('can neither remove a factor, nor see or replace recovery codes', async () => {
    const { person, device } = await enrolled()
    const session = await signIn(person)
    const code = device.code(now())

    for (const response of [
      await session.remove(code),
      await session.recoveryCodes(code),
      await session.replaceCodes(code),
      await session.send('POST', '/controller/mfa/recovery-codes', { code }),
    ])
      expect([response.status, response.body.error.cause.code]).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
    // None of them used the code.
    expect(outcome(await session.pass(code))).toBe(200)
  })

  it('sees neither the secret nor the recovery codes of a verified enrollment', async () => {
    const { person } = await enrolled()

    const { data } = (await (await signIn(person)).show()).body

    expect(data).toMatchObject({ isVerified: true, recoveryCodes: [] })
    expect(data).not.toHaveProperty('provisioningUrl')
  })
})

describe('wrong codes', () => {
  it('are in the audit once a minute, with the enrollment, and never with the code', async () => {
    const { person, session: full, device } = await enrolled()
    const { id } = (await full.show()).body.data
    const session = await signIn(person)
    const wrong = device.wrongCode(now())
    const used = device.code(now())
    await session.pass(wrong)
    await session.pass(used)
    await session.pass(used)

    const filter = encodeURIComponent(`operation = "refuse" and entityId = "${id}"`)
    const { data } = (await people.ask('GET', `/controller/audit?filter=${filter}`)).body

    const records = data.map(({ resource, method, reason, actorId }: Record<string, string>) => [
      resource,
      method,
      reason,
      actorId,
    ])
    // Refusals of this source and reason may have a record from before.
    for (const record of records) expect(record).toEqual(['mfa-enrollments', 'totp', expect.any(String), person.id])
  })
})

describe('secrets', () => {
  it('are neither in the database, nor in the audit, nor in lists', async () => {
    const { person, session, device, recoveryCodes } = await enrolled()
    await session.replaceCodes(device.code(now()))
    const [fresh = ''] = recoveryCodes
    const { store } = world.controller
    const rows = await store.db.selectFrom('mfa_enrollments').selectAll().where('identityId', '=', person.id).execute()
    const audit = await store.db.selectFrom('audit_records').selectAll().execute()
    const { data } = (await people.ask('GET', `/identities/${person.id}`)).body

    for (const text of [rows, audit, data].map((value) => JSON.stringify(value))) {
      for (const code of recoveryCodes) expect(text.includes(code)).toBe(false)
    }
    expect(fresh).not.toBe('')
    const changes = audit.filter(({ resource }) => resource === 'mfa-enrollments')
    expect(changes.length).toBeGreaterThan(0)
    for (const { before, after } of changes) {
      for (const text of [before, after]) {
        const { encryptedSecret = '***', encryptedRecoveryCodes = '***' } = JSON.parse(text ?? '{}')
        expect([encryptedSecret, encryptedRecoveryCodes]).toEqual(['***', '***'])
      }
    }
  })

  it('of an enrollment that was copied to another identity are worth nothing', async () => {
    const [one, other] = [await enrolled(), await enrolled()]
    const { db } = world.controller.store
    const row = await db
      .selectFrom('mfa_enrollments')
      .select('encryptedSecret')
      .where('identityId', '=', one.person.id)
      .executeTakeFirstOrThrow()
    const cipher = loadSecretCipher(getDataPaths(world.directory))
    const { id } = (await other.session.show()).body.data
    const place = { resource: 'mfa-enrollments', id, field: 'encryptedSecret' }
    expect(() => cipher.decrypt(row.encryptedSecret, place)).toThrow('cannot be decrypted')
  })
})

describe('the app of the tests', () => {
  it.each([
    [59_000, '287082'],
    [1_111_111_109_000, '081804'],
    [20_000_000_000_000, '353130'],
  ])('shows the code of RFC 6238 at %d', (at, code) => {
    const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
    expect(new AuthenticatorApp(`otpauth://totp/x?secret=${secret}`).code(at)).toBe(code)
  })
})
