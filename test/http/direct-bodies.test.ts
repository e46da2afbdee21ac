// Requests with bodies do not pass through Fastify either, if nothing about them is unusual: whatever is sent, and however it
// arrives, the response is that of Fastify's route.
import { setTimeout as nextTurn } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import type { AnyOperation } from '../../server/operations/operation.ts'
import { operations } from '../../server/operations/operations.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { BothRoutes, latestRequest, type Seen, toComparable, toPathOfFastify, wasDirect } from '../world/both-routes.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { exampleBody, makeExample } from '../world/examples.ts'
import { PASSWORD, People } from '../world/people.ts'
import { openTls, parseResponse, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'

let world: TestController
let log: RecordingLog
let routes: BothRoutes
let target: RawTarget
let people: People
let admin: { id: string; token: string }
let client: { id: string; token: string }

beforeAll(async () => {
  log = recordingLog()
  const settings = {
    listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management', 'fabric'], dialect: 'native' }],
    'log.requests': true,
    'limits.body': '96KiB',
    'limits.networkFile': '160KiB',
    'limits.writesPerIdentity': 100_000,
    'limits.ownChangesPerIdentity': 100_000,
  }
  world = await testController({ log, settings })
  const at = await world.listen()
  routes = new BothRoutes(at)
  target = rawTarget(at.url, at.rootPem)
  people = await People.in(world)
  admin = await world.signIn({ name: 'operator', isAdmin: true })
  client = await world.signIn({ name: 'phone' })
})
afterAll(async () => {
  routes.close()
  await world.close()
})

const JSON_TYPE = { 'content-type': 'application/json' }
const DRY = { 'controller-dry-run': 'true' }
const OF_NOTHING = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

const withBodies = operations.filter(({ method, body }) => method !== 'GET' || body)
const toPaths = (operation: AnyOperation) => listRoutes(operation).map(({ path }) => path.replace(/:\w+/g, OF_NOTHING))

interface Body {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Fastify serves it in any case. */
  readonly isUnusual?: true
}

/** Bodies by what they are. None is one that an operation could succeed with. */
const BODIES: Readonly<Record<string, Body>> = {
  'no body': {},
  'no body, and a type': { headers: JSON_TYPE },
  'no body, and a type of text': { headers: { 'content-type': 'text/plain' } },
  'no body, and an unknown type': { headers: { 'content-type': 'text/html' }, isUnusual: true },
  'a number': { headers: JSON_TYPE, body: '5' },
  null: { headers: JSON_TYPE, body: 'null' },
  'a text in JSON': { headers: JSON_TYPE, body: '"a text"' },
  'half of an object': { headers: JSON_TYPE, body: '{"name":' },
  'spaces alone': { headers: JSON_TYPE, body: '  ' },
  'a prototype': { headers: JSON_TYPE, body: '{"__proto__":{"isAdmin":true},"name":5}' },
  'a constructor': { headers: JSON_TYPE, body: '{"constructor":{"prototype":{"a":1}},"name":5}' },
  'bytes that are not UTF-8': { headers: JSON_TYPE, body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
  'a number that is too large': { headers: JSON_TYPE, body: '{"name":1e999}' },
  'members of a wrong type': { headers: JSON_TYPE, body: '{"name":[],"id":{},"type":5,"tags":7,"path":[]}' },
  'unknown members': { headers: JSON_TYPE, body: '{"unknown":true,"name":5}' },
  'lists in lists': { headers: JSON_TYPE, body: '['.repeat(100) + ']'.repeat(100) },
  'no type': { body: '{}' },
  'another type': { headers: { 'content-type': 'application/xml' }, body: '<a/>', isUnusual: true },
  'a type in capitals': { headers: { 'content-type': 'Application/JSON' }, body: '5', isUnusual: true },
  'a type with a parameter': {
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '5',
    isUnusual: true,
  },
  'a text': { headers: { 'content-type': 'text/plain' }, body: 'a text' },
  'a text that is not UTF-8': { headers: { 'content-type': 'text/plain' }, body: Buffer.from([0xff]) },
  'a coding': { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body: '5' },
  'the coding that is none': { headers: { ...JSON_TYPE, 'content-encoding': 'identity' }, body: '5' },
  'no length': { headers: { ...JSON_TYPE, 'transfer-encoding': 'chunked' }, body: '5', isUnusual: true },
}

const CALLERS: readonly (readonly [name: string, headers: () => Record<string, string>])[] = [
  ['without a session', () => ({})],
  ['a client', () => ({ 'zt-session': client.token })],
  ['a client of the native dialect', () => ({ 'net-session': client.token })],
  ['an administrator', () => ({ 'net-session': admin.token })],
  ['an administrator of the dialect of OpenZiti', () => ({ 'zt-session': admin.token })],
  ['with an unknown session', () => ({ 'zt-session': '2e4fbc4d-67a2-4cf5-8a3c-3ea5a6f5b5b1' })],
]

/** One operation of each kind that could make a difference. */
const kinds = new Map(
  withBodies.map((operation) => {
    const { apis, method, access, body, bodyLimit } = operation
    const grantedTo = 'public' in access ? 'public' : access.grantedTo
    return [[apis[0], method, grantedTo, body?.contentTypes.length, bodyLimit].join(), operation]
  }),
)

async function expectAlike(operation: AnyOperation, caller: Readonly<Record<string, string>>, sent: Body) {
  // Some operations would succeed without a body, as those to which it is optional do.
  const dryRun = operation.body?.isRequired && sent.body !== undefined ? {} : DRY
  for (const path of toPaths(operation)) {
    const { method } = operation
    const { headers, body, isUnusual } = sent
    const { isDirect } = await routes.expectSame({ method, path, headers: { ...caller, ...dryRun, ...headers }, body })
    expect(isDirect, `${method} ${path}`).toBe(!isUnusual)
  }
}

describe.each(CALLERS)('%s sends', (_, caller) => {
  it.each(['no body', 'members of a wrong type'])('%s to every operation', async (name) => {
    for (const operation of withBodies) await expectAlike(operation, caller(), BODIES[name] as Body)
  })

  it.each(Object.entries(BODIES))('%s to each kind of operation', async (_what, sent) => {
    for (const operation of kinds.values()) await expectAlike(operation, caller(), sent)
  })
})

const creatable = (resources as readonly AnyResource[]).filter(({ verbs }) => verbs.includes('create'))

describe('an administrator tries', () => {
  const send = (method: string, path: string, body?: unknown) =>
    routes.expectSame({
      method,
      path: MANAGEMENT + path,
      headers: { 'net-session': admin.token, ...DRY, ...(body === undefined ? {} : JSON_TYPE) },
      body: body === undefined ? undefined : JSON.stringify(body),
    })

  it.each(creatable.map((resource) => [resource.plural, resource] as const))(
    'changes of %s alike',
    async (plural, resource) => {
      const id = await makeExample(world, plural, `the ${resource.name}`)
      const body = await exampleBody(world, resource, `another ${resource.name}`)
      const [all, one] = [`/${plural}`, `/${plural}/${id}`]

      const creation = await send('POST', all, body)
      const changes = [
        ...(resource.verbs.includes('patch') ? [await send('PATCH', one, { tags: { site: 'north' } })] : []),
        ...(resource.verbs.includes('delete') ? [await send('DELETE', one)] : []),
      ]
      if (resource.verbs.includes('replace')) await send('PUT', one, body)

      expect([creation.status, creation.isDirect]).toEqual([201, true])
      for (const { status } of changes) expect(status).toBe(200)
    },
  )
})

it('a client signs in alike', async () => {
  const { username } = await people.person()
  const signIn = {
    method: 'POST',
    path: `${CLIENT}/authenticate?method=password`,
    headers: JSON_TYPE,
    body: JSON.stringify({ username, password: PASSWORD }),
  }
  const describeSignIn = ({ status, headers, text }: Seen) => [
    status,
    Object.keys(headers).sort(),
    Object.keys(JSON.parse(text).data).sort(),
  ]

  const direct = await routes.send(signIn)
  expect(wasDirect()).toBe(true)
  const byFastify = await routes.send({ ...signIn, path: toPathOfFastify(signIn.path) })

  expect(direct.status).toBe(200)
  expect(describeSignIn(direct)).toEqual(describeSignIn(byFastify))
})

describe('a body as large as it may be, and one byte more,', () => {
  it.each([
    ['of an anonymous caller', 'limits.bodyBeforeSession', 'POST', '/authenticate?method=password', () => ({})],
    ['of a client', 'limits.ownBody', 'PATCH', `/current-identity/authenticators/${OF_NOTHING}`, () => client],
    ['of a posture response', 'limits.postureBody', 'POST', '/posture-response', () => client],
    ['of an administrator', 'limits.body', 'POST', '/identities', () => admin],
    ['of a network file', 'limits.networkFile', 'POST', '/controller/network/plan', () => admin],
  ] as const)('%s get the same responses', async (_whose, limit, method, path, caller) => {
    const maxBytes = world.controller.config[limit]
    const base = limit === 'limits.body' || limit === 'limits.networkFile' ? MANAGEMENT : CLIENT
    const { token } = caller() as { token?: string }
    const headers = { ...JSON_TYPE, ...(token ? { 'zt-session': token } : {}) }
    const send = (bytes: number) => routes.expectSame({ method, path: base + path, headers, body: '5'.padStart(bytes) })

    const [largest, tooLarge] = [await send(maxBytes), await send(maxBytes + 1)]

    expect([largest.status, largest.isDirect, tooLarge.status, tooLarge.isDirect]).toEqual([400, true, 413, false])
  })
})

/** Every response of a connection, compared without what differs between any two. */
function comparableResponses(received: string, path: string) {
  return received.split(/(?=HTTP\/1\.1 )/).map((text) => toComparable(parseResponse(text), path))
}

/** Does the same on the path of either route; returns what the server sent until it closed the connection. */
async function converse(path: string, talk: (socket: TLSSocket, path: string) => Promise<unknown>) {
  const converseOn = async (ownPath: string) => {
    const socket = await openTls(target)
    const received = readToEnd(socket)
    log.lines.length = 0
    await talk(socket, ownPath)
    const responses = comparableResponses(await received, path)
    return { responses, lines: await countedRequests() }
  }
  const direct = await converseOn(path)
  expect(direct).toEqual(await converseOn(toPathOfFastify(path)))
  return direct
}

/** The requests in the log, by operation and status. */
async function countedRequests() {
  // A client knows of the end of the connection before the server does.
  await expect.poll(() => latestRequest()?.socket.closed).toBe(true)
  await nextTurn()
  return log.lines
    .filter(({ message }) => message === 'request')
    .map(({ fields: { operation, status } }) => ({ operation, status }))
}

const IDENTITIES = `${MANAGEMENT}/identities`
const CLOSE = 'connection: close'

const head = (method: string, path: string, ...headers: string[]) =>
  `${[`${method} ${path} HTTP/1.1`, 'host: x', ...headers].join('\r\n')}\r\n\r\n`
const session = () => `net-session: ${admin.token}`
const ofLength = (bytes: number) => ['content-type: application/json', `content-length: ${bytes}`]
const identityNamed = (name: string) => JSON.stringify({ name, type: 'Device', isAdmin: false })

async function existsIdentity(name: string): Promise<boolean> {
  const query = world.controller.store.db.selectFrom('identities').select('id').where('name', '=', name)
  return (await query.execute()).length > 0
}

describe('a body that arrives', () => {
  it.each([1, 2, 7, 40])('in pieces of %d bytes is read alike', async (bytes) => {
    const body = identityNamed('in pieces ü')
    const { responses } = await converse(IDENTITIES, async (socket, path) => {
      socket.setNoDelay(true)
      const length = Buffer.byteLength(body)
      socket.write(head('POST', path, session(), CLOSE, 'controller-dry-run: true', ...ofLength(length)))
      for (let at = 0; at < length; at += bytes) {
        socket.write(Buffer.from(body).subarray(at, at + bytes))
        await nextTurn()
      }
    })

    expect(responses.map(({ status }) => status)).toEqual([201])
  })

  it('with other requests is read alike, and served in order', async () => {
    const { responses } = await converse(IDENTITIES, async (socket, path) => {
      const body = '{"name":'
      const patch = '{}'
      socket.write(
        [
          head('GET', '/version'),
          head('PATCH', `${path.replace(/\/$/, '')}/${OF_NOTHING}`, session(), ...ofLength(patch.length)) + patch,
          head('GET', `${path}?limit=1`, session()),
          head('POST', path, session(), ...ofLength(body.length)) + body,
          head('GET', '/version'),
        ].join(''),
      )
    })

    // What follows a body that cannot be read is not served.
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 200, 400])
  })

  it('after its request was refused leaves the connection as it was', async () => {
    const { responses } = await converse(IDENTITIES, async (socket, path) => {
      socket.write(head('POST', path, ...ofLength(10)))
      await nextTurn()
      socket.write(' '.repeat(10) + head('GET', '/version', CLOSE))
    })

    expect(responses.map(({ status }) => status)).toEqual([401, 200])
  })

  it.each([
    ['is cut off', (socket: TLSSocket) => socket.destroy()],
    ['ends too early', (socket: TLSSocket) => socket.end()],
  ])('and %s is never acted on, and not counted as a request with a response', async (_what, stop) => {
    const body = identityNamed('half')
    const { lines } = await converse(IDENTITIES, async (socket, path) => {
      socket.write(head('POST', path, session(), CLOSE, ...ofLength(body.length)) + body.slice(0, -1))
      await expect.poll(() => latestRequest()?.url).toBe(path)
      stop(socket)
    })

    expect(lines).toEqual([])
    expect(await existsIdentity('half')).toBe(false)
  })

  it('after the caller lost its right is refused alike', async () => {
    const { responses } = await converse(IDENTITIES, async (socket, path) => {
      const { id, token } = await world.signIn({ isAdmin: true })
      const body = '{"name":'
      const hasContinued = new Promise((resolve) => socket.once('data', resolve))
      socket.write(head('POST', path, `net-session: ${token}`, 'expect: 100-continue', ...ofLength(body.length)))
      await hasContinued
      await people.manage('PATCH', `/identities/${id}`, { isAdmin: false })
      socket.write(body)
    })

    expect(responses.map(({ status }) => status)).toEqual([100, 401])
  })
})
