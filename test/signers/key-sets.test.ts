// Key sets of signers: fetched, cached, rotated and down; and that no token and no endpoint slows others.
import dns, { type LookupAddress } from 'node:dns'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { OutboundClient } from '../../src/client/outbound-client.ts'
import { CLIENT, TestClock, type TestController, type TestResponse, testController } from '../world/controller.ts'
import { authorityFile, createCertificate, type Endpoint, json, openEndpoint } from '../world/endpoints.ts'
import { findFreePort } from '../world/free-port.ts'
import { createIssuerKey, Issuer, toJwk } from '../world/issuers.ts'
import { People } from '../world/people.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const authority = authorityFile()
afterAll(() => authority.remove())

let world: TestController
let people: People
let issuer: Issuer
let endpoint: Endpoint
let signerId: string
let warnings: string[]

beforeEach(async () => {
  warnings = []
  const ignore = () => {}
  const warn = (_fields: unknown, message: string) => warnings.push(message)
  world = await testController({
    settings: { 'signers.caFile': authority.path, 'signers.timeout': '1m' },
    log: { debug: ignore, info: ignore, warn, error: warn },
  })
  people = await People.in(world)
  issuer = new Issuer()
  endpoint = await openEndpoint(json({ keys: [toJwk(issuer.key)] }))
  signerId = await issuer.trustedBy(people, { jwksEndpoint: `${endpoint.url}/jwks` })
  await people.identity({ externalId: 'subject' })
})
afterEach(async () => {
  await endpoint.close()
  await world.close()
})

let sources = 0

function signIn(token = issuer.token(world, 'subject'), on = world): Promise<TestResponse> {
  const headers = { authorization: `Bearer ${token}` }
  const from = `10.1.${sources >> 8}.${sources++ & 255}`
  return on.send({ method: 'POST', path: `${CLIENT}/authenticate?method=ext-jwt`, body: {}, headers, from })
}

const refreshDue = () => world.controller.auth.signers.keyRefresher.refreshDue(world.controller.contexts)
const readStatus = async () => (await people.manage('GET', `/external-jwt-signers/${signerId}`)).keyStatus

/** Something that a test waits for until another part of it happens. */
function makeSignal() {
  let give = () => {}
  const signal = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given: signal, give }
}

/** Replaces the key of the issuer by another one. Returns the tokens of both, in order. */
function rotate(): { oldToken: string; newToken: string } {
  const oldToken = issuer.token(world, 'subject')
  issuer.key = createIssuerKey()
  endpoint.respond = json({ keys: [toJwk(issuer.key)] })
  return { oldToken, newToken: issuer.token(world, 'subject') }
}

describe('the keys of a signer', () => {
  it('are fetched for the first token, and used for all further ones', async () => {
    const responses = [await signIn(), await signIn(), await signIn()]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(endpoint.requests).toEqual(['/jwks'])
    expect(await readStatus()).toEqual({
      keyIds: [issuer.key.kid],
      fetchedAt: new Date(world.clock.now()).toISOString(),
      failure: null,
      failedSince: null,
    })
  })

  it('are fetched in the background before any token arrives', async () => {
    await refreshDue()

    expect((await readStatus()).keyIds).toEqual([issuer.key.kid])
    expect(endpoint.requests).toEqual(['/jwks'])
  })

  it('are fetched once for tokens that arrive together', async () => {
    const tokens = Array.from({ length: 20 }, (_, at) =>
      issuer.token(world, 'subject', { claims: { jti: String(at) } }),
    )

    const responses = await Promise.all(tokens.map((token) => signIn(token)))

    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(endpoint.requests).toHaveLength(1)
  })

  it('are fetched at once when a token names a new one, and those that are gone verify nothing any more', async () => {
    await signIn()
    world.clock.advance(10 * SECOND)
    const { oldToken, newToken } = rotate()

    const responses = [await signIn(oldToken), await signIn(newToken), await signIn(oldToken)]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 401])
    expect(endpoint.requests).toHaveLength(2)
  })

  it('are not fetched again within ten seconds, whatever keys tokens name', async () => {
    await signIn()
    const { newToken } = rotate()
    const forge = (at: number) => issuer.token(world, 'subject', { header: { kid: `invented ${at}` } })
    const early = [await signIn(newToken), ...(await Promise.all([1, 2, 3].map((at) => signIn(forge(at)))))]
    world.clock.advance(10 * SECOND)

    const late = await signIn(newToken)

    expect(early.map(({ status }) => status)).toEqual([401, 401, 401, 401])
    expect(late.status).toBe(200)
    expect(endpoint.requests).toHaveLength(2)
  })

  it('survive a restart while the endpoint is down', async () => {
    await signIn()
    await endpoint.close()
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })

    expect((await signIn(issuer.token(again, 'subject'), again)).status).toBe(200)
    await again.stop()
    world = await testController({ directory: world.directory, clock: world.clock })
    endpoint = await openEndpoint(json({}))
  })

  it('are evicted with their endpoint', async () => {
    await signIn()
    const other = await openEndpoint(json({ keys: [toJwk(createIssuerKey())] }))
    await people.manage('PATCH', `/external-jwt-signers/${signerId}`, { jwksEndpoint: other.url })

    expect((await signIn()).status).toBe(401)
    await other.close()
  })

  it('leave no trace of a refresh in the record and in the audit', async () => {
    const before = await people.manage('GET', `/external-jwt-signers/${signerId}`)
    world.clock.advance(MINUTE)
    await refreshDue()

    const after = await people.manage('GET', `/external-jwt-signers/${signerId}`)
    const filter = encodeURIComponent(`entityId = "${signerId}"`)
    const records = await people.manage('GET', `/controller/audit?filter=${filter}`)

    expect(after.updatedAt).toBe(before.updatedAt)
    expect(records.map(({ operation }: { operation: string }) => operation)).toEqual(['create'])
  })
})

describe('a key set is fetched again', () => {
  it.each([
    ['after ten minutes, if its headers do not tell', {}, 10 * MINUTE],
    ['when its max-age is over', { 'cache-control': 'public, max-age=1800' }, 30 * MINUTE],
    ['when its max-age is over, less its age', { 'cache-control': 'max-age=1800', age: '600' }, 20 * MINUTE],
    [
      'when it expires',
      { date: 'Thu, 01 Jan 2026 00:00:00 GMT', expires: 'Thu, 01 Jan 2026 00:15:00 GMT' },
      15 * MINUTE,
    ],
    ['after a minute, if it may not be stored', { 'cache-control': 'no-store' }, MINUTE],
    ['after a day at the latest', { 'cache-control': 'max-age=31536000' }, 24 * 60 * MINUTE],
  ])('%s', async (_when, headers, interval) => {
    endpoint.respond = json({ keys: [toJwk(issuer.key)] }, headers)
    await refreshDue()
    world.clock.advance(interval - SECOND)
    await refreshDue()
    const early = endpoint.requests.length
    world.clock.advance(SECOND)

    await refreshDue()

    expect([early, endpoint.requests.length]).toEqual([1, 2])
  })

  it('never while its signer is disabled', async () => {
    await people.manage('PATCH', `/external-jwt-signers/${signerId}`, { enabled: false })

    await refreshDue()
    await signIn()

    expect(endpoint.requests).toEqual([])
  })
})

describe('an endpoint that fails', () => {
  const failures: readonly (readonly [string, () => Endpoint['respond'], RegExp])[] = [
    ['returns HTML', () => (_request, response) => void response.end('<html>hello</html>'), /is not JSON/],
    ['returns an error', () => (_request, response) => void response.writeHead(500).end(), /status 500/],
    ['breaks off', () => (request) => void request.socket.destroy(), /^connection reset$/],
    ['returns a hundred megabytes', () => flood, /more than 524288 bytes/],
    ['returns no key set', () => json({ keys: 'none' }), /not a key set/],
    ['returns an empty key set', () => json({ keys: [] }), /no key that tokens can be verified by/],
    [
      'returns secret keys only',
      () => json({ keys: [{ kty: 'oct', kid: 'secret', k: Buffer.alloc(32).toString('base64url') }] }),
      /no key that tokens can be verified by/,
    ],
    ['redirects to another host', () => redirect('https://127.0.0.2:1/jwks'), /redirect to another origin/],
    ['redirects to http', () => redirect(endpoint.url.replace('https', 'http')), /redirect to another origin/],
    ['redirects in a circle', () => redirect('/jwks'), /more than 3 redirects/],
    [
      'redirects to nowhere',
      () => (_request, response) => void response.writeHead(302).end(),
      /without a URL to follow/,
    ],
  ]

  /** Sends as much as the client takes. */
  const flood: Endpoint['respond'] = (_request, response) => {
    const chunk = Buffer.alloc(64 * 1024, ' ')
    let left = (100 * 1024 * 1024) / chunk.length
    const write = () => {
      while (left-- > 0) if (!response.write(chunk)) return void response.once('drain', write)
      response.end()
    }
    response.on('error', () => {})
    write()
  }

  function drip(_request: unknown, response: ServerResponse) {
    response.writeHead(200)
    const timer = setInterval(() => response.write(' '), 10)
    response.on('close', () => clearInterval(timer))
  }

  const redirect =
    (location: string): Endpoint['respond'] =>
    (_request, response) => {
      response.writeHead(302, { location }).end()
    }

  it.each(failures)('and %s: its signer verifies by the known keys, and says so', async (_how, respond, reason) => {
    await signIn()
    world.clock.advance(10 * MINUTE)
    endpoint.respond = respond()

    await refreshDue()

    expect((await signIn()).status).toBe(200)
    expect(await readStatus()).toMatchObject({
      keyIds: [issuer.key.kid],
      failure: expect.stringMatching(reason),
      failedSince: new Date(world.clock.now()).toISOString(),
    })
    expect(warnings).toEqual(['the key set of a signer cannot be fetched; its known keys are used on'])
  })

  it('and speaks no TLS: the failure says so, without the words of the TLS library', async () => {
    const server = createServer((_request, response) => void response.end('{"keys":[]}'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await people.manage('PATCH', `/external-jwt-signers/${signerId}`, {
      jwksEndpoint: `https://127.0.0.1:${port}/jwks`,
    })

    await refreshDue()

    const { failure } = await readStatus()
    server.close()
    expect(failure).toMatch(/^what listens there does not speak TLS \([A-Z_]+\)$/)
  })

  it.each<readonly [string, Endpoint['respond']]>([
    ['hangs', () => {}],
    ['hangs in the middle', (_request, response) => void response.writeHead(200).write('{"keys":')],
    ['sends a byte now and then', drip],
  ])('and %s: the request ends in time', async (_how, respond) => {
    await signIn()
    await world.stop()
    endpoint.respond = respond
    const settings = { 'signers.caFile': authority.path, 'signers.timeout': '100ms' }
    world = await testController({ directory: world.directory, clock: world.clock, settings })
    people = await People.in(world, 'administers again')

    await refreshDue()

    expect((await signIn()).status).toBe(200)
    expect((await readStatus()).failure).toBe('no complete response within 100 ms')
  })

  it('is refused without known keys, and works again when it responds', async () => {
    const working = endpoint.respond
    endpoint.respond = (_request, response) => void response.writeHead(503).end()
    const down = await signIn()
    const { failure } = await readStatus()
    world.clock.advance(10 * SECOND)
    endpoint.respond = working

    const up = await signIn()

    expect([down.status, up.status]).toEqual([401, 200])
    expect(failure).toBe('status 503')
    expect(await readStatus()).toMatchObject({ failure: null, failedSince: null })
  })

  it('is asked again after ten seconds, and then ever less often, up to five minutes', async () => {
    endpoint.respond = (_request, response) => void response.writeHead(503).end()
    const waits: number[] = []
    await refreshDue()
    for (let passed = 0; waits.length < 7; passed += SECOND) {
      const before = endpoint.requests.length
      world.clock.advance(SECOND)
      await refreshDue()
      if (endpoint.requests.length === before) continue
      waits.push((passed + SECOND) / SECOND)
      passed = -SECOND
    }

    expect(waits).toEqual([10, 20, 40, 80, 160, 300, 300])
  })

  it('delays the request of the unknown key alone', async () => {
    const other = new Issuer()
    await other.trustedBy(people)
    const order: string[] = []
    const release = makeSignal()
    endpoint.respond = (request, response) =>
      void release.given.then(() => json({ keys: [toJwk(issuer.key)] })(request, response))
    const waiting = signIn().then(({ status }) => order.push(`waited ${status}`))
    for (const name of ['another signer', 'a password', 'a list']) {
      const response =
        name === 'another signer'
          ? await signIn(other.token(world, 'subject'))
          : name === 'a password'
            ? await people.signIn(await people.person())
            : await people.ask('GET', '/identities')
      order.push(`${name} ${response.status}`)
    }
    release.give()
    await waiting

    expect(order).toEqual(['another signer 200', 'a password 200', 'a list 200', 'waited 200'])
  })

  it('is left at once when the controller stops', async () => {
    const other = await testController({ settings: { 'signers.caFile': authority.path, 'signers.timeout': '1h' } })
    const theirs = await People.in(other)
    await issuer.trustedBy(theirs, { jwksEndpoint: endpoint.url })
    const arrival = makeSignal()
    endpoint.respond = () => arrival.give()
    const refreshing = other.controller.auth.signers.keyRefresher.refreshDue(other.controller.contexts)
    await arrival.given

    await other.close()

    await expect(refreshing).resolves.toBeUndefined()
  })
})

type Found = (error: null, addresses: LookupAddress[]) => void

describe('an endpoint is trusted', () => {
  it('by the authorities of the setting only', async () => {
    const other = await testController({ clock: new TestClock(world.clock.now()) })
    const theirs = await People.in(other)
    const id = await issuer.trustedBy(theirs, { jwksEndpoint: endpoint.url })

    const response = await signIn(issuer.token(other, 'subject'), other)

    const { keyStatus } = await theirs.manage('GET', `/external-jwt-signers/${id}`)
    expect(response.status).toBe(401)
    expect(keyStatus.failure).toBe('its certificate is not from an authority that is trusted')
    await other.close()
  })

  it('over http if the setting allows it', async () => {
    const other = await testController({ settings: { 'signers.allowHttp': true } })
    const theirs = await People.in(other)
    const plain = await openEndpoint(json({ keys: [toJwk(issuer.key)] }), 'http')
    await issuer.trustedBy(theirs, { jwksEndpoint: plain.url })
    await theirs.identity({ externalId: 'subject' })

    expect((await signIn(issuer.token(other, 'subject'), other)).status).toBe(200)
    await other.close()
    await plain.close()
  })

  it('at one address in a request, whatever its name leads to by the next look-up', async () => {
    const other = createServer((_request, response) => response.end('{"keys":[]}'))
    // Not one that the system chooses for one address, which may be in use at the other.
    const port = await findFreePort()
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.2', resolve))
    const first = createServer((request, response) => {
      if (request.url === '/keys') return void response.end('{"keys":"of the first"}')
      response.writeHead(302, { location: '/keys' }).end()
    })
    await new Promise<void>((resolve) => first.listen(port, '127.0.0.1', resolve))
    let lookups = 0
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: unknown, callback: Found) => {
      const address = lookups++ === 0 ? '127.0.0.1' : '127.0.0.2'
      callback(null, [{ address, family: 4 }])
    }) as never)
    const outbound = new OutboundClient({
      settingPrefix: 'signers',
      allowHttp: true,
      allowPrivate: true,
      timeoutMs: 60_000,
    })

    const { value } = await outbound.fetchJson(`http://rebound.test:${port}/`)

    lookup.mockRestore()
    for (const server of [first, other]) await new Promise((resolve) => server.close(resolve))
    expect([value, lookups]).toEqual([{ keys: 'of the first' }, 1])
  })

  it('through redirects to itself', async () => {
    endpoint.respond = (request, response) => {
      if (request.url === '/jwks') response.writeHead(307, { location: '/keys' }).end()
      else json({ keys: [toJwk(issuer.key)] })(request, response)
    }

    expect((await signIn()).status).toBe(200)
    expect(endpoint.requests).toEqual(['/jwks', '/keys'])
  })
})

describe('of a key set', () => {
  it('a key counts that only its certificate holds, the first one', async () => {
    const [key, other] = [createIssuerKey('RSA'), createIssuerKey()]
    const toX5c = (pem: string) => pem.replace(/-----[^-]+-----|\s/g, '')
    const x5c = [key, other].map(({ publicKey }) => toX5c(createCertificate('signing', publicKey)))
    endpoint.respond = json({
      keys: [
        { kid: key.kid, kty: 'RSA', use: 'sig', x5c },
        { kid: 'broken', kty: 'RSA', x5c: ['AAAA'] },
        { kid: 'empty', kty: 'RSA', x5c: [] },
      ],
    })

    const response = await signIn(issuer.token(world, 'subject', { key }))

    const { fetchedKeys } = world.controller.auth.signers.directory.get(signerId) ?? {}
    expect(response.status).toBe(200)
    expect((await readStatus()).keyIds).toEqual([key.kid])
    expect(Object.keys(fetchedKeys?.keys[0] ?? {}).sort()).toEqual(['e', 'kid', 'kty', 'n'])
  })

  it('only public keys for signatures count, each by its own algorithm, and nothing else is stored', async () => {
    const [forEncryption, restricted, small] = [createIssuerKey(), createIssuerKey('RSA'), createIssuerKey()]
    const { privateKey } = issuer.key
    const leaked = { ...privateKey.export({ format: 'jwk' }), kid: issuer.key.kid }
    const keys = [
      leaked,
      { ...toJwk(createIssuerKey()), kid: issuer.key.kid },
      { ...toJwk(forEncryption), use: 'enc' },
      { ...toJwk(restricted), alg: 'PS256' },
      { ...toJwk(small), alg: 'ES384' },
      { ...toJwk(createIssuerKey()), kid: undefined },
      { ...toJwk(createIssuerKey()), key_ops: ['sign'] },
      { kty: 'RSA', kid: 'broken', n: 'AQAB', e: 'AQAB' },
      'text',
      null,
    ]
    endpoint.respond = json({ keys })

    const response = await signIn()
    const byWrongAlgorithm = await signIn(issuer.token(world, 'subject', { key: restricted }))

    const { fetchedKeys } = world.controller.auth.signers.directory.get(signerId) ?? {}
    expect((await readStatus()).keyIds).toEqual([issuer.key.kid, restricted.kid])
    expect([response.status, byWrongAlgorithm.status]).toEqual([200, 401])
    expect(Object.keys(fetchedKeys?.keys[0] ?? {}).sort()).toEqual(['crv', 'kid', 'kty', 'x', 'y'])
  })
})
