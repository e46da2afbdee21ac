// The channel over which OpenZiti's tools watch events: a WebSocket whose messages are frames of the control channel.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { encodeMessage, MESSAGE_LIMITS, type Message, MessageReader } from '../../server/control-channel/message.ts'
import { FABRIC } from '../world/controller.ts'
import { openTls, rawTarget } from '../world/raw-requests.ts'
import { TestNetwork } from '../world/router/network.ts'

/** Numbers of the protocol: kinds of message, and headers. */
const [RESULT, STREAM_REQUEST, STREAM_EVENT, TOGGLE_PIPE_TRACES, STREAM_TRACES] = [2, 10040, 10041, 10044, 10046]
const [REPLY_FOR, RESULT_SUCCESS, EVENT_TYPE] = [1, 2, 10]

const HEARTBEAT = 5
const PING = { type: HEARTBEAT, sequence: 1, body: Buffer.alloc(0) }

let network: TestNetwork
let admin: string
beforeAll(async () => {
  const apis = ['client', 'management', 'fabric', 'control']
  const listeners = [{ address: '127.0.0.1:0', apis, dialect: 'openziti' }]
  network = await TestNetwork.start({ settings: { listeners } })
  admin = await network.world.admin()
})
afterAll(() => network.close())

const tools: Tool[] = []
afterEach(() => {
  for (const { socket } of tools.splice(0)) socket.terminate()
})

interface Tool {
  readonly socket: WebSocket
  /** The events so far, by JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of an event
  readonly events: any[]
  readonly messages: Message[]
  readonly closeCode: number | undefined
  send(type: number, body?: unknown): void
  /** Subscribes to types of events. Returns whether that succeeded, and the text of the result. */
  subscribe(...types: string[]): Promise<[boolean, string]>
}

async function connect(token: string): Promise<Tool> {
  const { url, rootPem } = network.address
  const socket = new WebSocket(`${url.replace('https', 'wss')}${FABRIC}/ws-api`, {
    headers: token === '' ? {} : { 'zt-session': token },
    ca: rootPem,
  })
  const events: unknown[] = []
  const messages: Message[] = []
  const state = { closeCode: undefined as number | undefined, sequence: 0 }
  socket.on('message', (bytes: Buffer) => {
    const reader = new MessageReader(MESSAGE_LIMITS)
    reader.push(bytes)
    const message = reader.next() as Message
    messages.push(message)
    if (message.type === STREAM_EVENT) events.push(JSON.parse(message.body.toString()))
  })
  socket.once('close', (code) => {
    state.closeCode = code
  })
  const tool: Tool = {
    ...{ socket, events, messages },
    get closeCode() {
      return state.closeCode
    },
    send(type, body = '') {
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
      socket.send(encodeMessage({ type, sequence: ++state.sequence, headers: new Map(), body: bytes }))
    },
    async subscribe(...types) {
      tool.send(STREAM_REQUEST, { format: 'json', subscriptions: types.map((type) => ({ type, options: null })) })
      const request = state.sequence
      const isReply = ({ type, headers }: Message) =>
        type === RESULT && headers.get(REPLY_FOR)?.readInt32LE() === request
      await expect.poll(() => messages.some(isReply)).toBe(true)
      const { headers, body } = messages.find(isReply) as Message
      return [headers.get(RESULT_SUCCESS)?.[0] === 1, body.toString()]
    },
  }
  tools.push(tool)
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return tool
}

const typesOf = ({ events }: Tool) => events.map(({ event_type, eventType }) => event_type ?? eventType)

describe('a tool that does not read', () => {
  it.each<[string, (socket: WebSocket) => void]>([
    [
      'messages',
      (socket) => socket.send(encodeMessage({ ...PING, headers: new Map([[HEARTBEAT, Buffer.alloc(10_000)]]) })),
    ],
    ['pings of WebSockets', (socket) => socket.ping(Buffer.alloc(125))],
  ])('is disconnected by responses to its %s that it leaves unread', async (_, ask) => {
    const tool = await connect(admin)
    await tool.subscribe('circuit')
    tool.socket.pause()
    for (let round = 0; round < 200; round += 1) {
      for (let each = 0; each < 1_000 && tool.socket.bufferedAmount < 2 ** 20; each += 1) ask(tool.socket)
      await new Promise((resolve) => setImmediate(resolve))
    }
    tool.socket.resume()
    await expect.poll(() => tool.closeCode, { timeout: 20_000 }).toBe(1006)
  })
})

describe('a tool that watches events', () => {
  it('receives those of the types that it subscribes to, in the form of OpenZiti', async () => {
    const tool = await connect(admin)
    expect(await tool.subscribe('router', 'circuit', 'session', 'apiSession', 'metrics')).toEqual([true, 'success'])
    const router = await network.router()
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    const { circuitId } = await router.dial(client)
    network.fabric.circuits.remove(circuitId, true)

    const ofNetwork = () => tool.events.filter(({ namespace }) => namespace !== 'apiSession')
    await expect
      .poll(() => ofNetwork().map(({ event_type }) => event_type))
      .toEqual(['router-online', 'created', 'created', 'deleted'])
    const [online, session, circuit] = ofNetwork()
    expect(online).toMatchObject({ namespace: 'router', router_id: router.id, router_online: true })
    expect(session).toMatchObject({ namespace: 'session', session_type: 'Dial', identity_id: client.identityId })
    expect(circuit).toMatchObject({
      ...{ namespace: 'circuit', version: 2, circuit_id: circuitId, service_id: serviceId, link_count: 0 },
      ...{ path: { nodes: [router.id], links: [] }, tags: { clientId: client.identityId } },
    })
    expect(Date.parse(circuit.timestamp)).not.toBeNaN()
    const names = tool.messages.flatMap(({ headers }) => headers.get(EVENT_TYPE)?.toString() ?? [])
    expect(new Set(names)).toEqual(new Set(['router', 'session', 'circuit', 'apiSession']))
    expect(JSON.stringify(tool.events)).not.toContain(client.token)
  })

  it('receives changes with their author, and what they were', async () => {
    const tool = await connect(admin)
    await tool.subscribe('entityChange')
    const id = await network.manage.make('config-types', { name: 'shape of a tool' })
    await network.manage.change('PATCH', `/config-types/${id}`, { name: 'other shape' })

    await expect.poll(() => typesOf(tool)).toEqual(['created', 'updated'])
    expect(tool.events[1]).toMatchObject({
      ...{ namespace: 'entityChange', entityType: 'configTypes', entityId: id },
      ...{ initialState: { name: 'shape of a tool' }, finalState: { name: 'other shape' } },
      metadata: { author: { type: 'identity' } },
    })
  })

  it('receives only what it may read', async () => {
    const { token } = await network.world.signIn({ permissions: ['config-type.read'] })
    const tool = await connect(token)
    await tool.subscribe('entityChange')
    await network.service()
    await network.manage.make('config-types', { name: 'visible shape' })

    await expect.poll(() => tool.events.map(({ entityType }) => entityType)).toEqual(['configTypes'])
  })

  it('is disconnected when its session ends', async () => {
    const { id } = await network.world.signIn({ isAdmin: true })
    const { token, apiSessionId } = await network.world.signInAgain(id)
    const tool = await connect(token)
    await tool.subscribe('router')
    await network.manage.change('DELETE', `/api-sessions/${apiSessionId}`)

    await expect.poll(() => tool.closeCode).toBe(1001)
  })

  it('is disconnected if it does not read, and then costs nothing', async () => {
    const { events } = network.world.controller
    await expect.poll(() => events.watcherCount).toBe(0)
    const tool = await connect(admin)
    await tool.subscribe('link')
    tool.socket.pause()
    const happened = {
      type: 'link-up',
      resource: 'links',
      related: [],
      details: { protocol: 'x'.repeat(20_000) },
    } as const
    for (let n = 0; n < 2_000 && events.watcherCount > 0; n++) {
      events.add({ ...happened, id: `link ${n}` })
      await new Promise(setImmediate)
    }

    expect(events.watcherCount).toBe(0)
  })
})

describe('the channel of tools', () => {
  it.each([
    ['a type that does not exist', { format: 'json', subscriptions: [{ type: 'weather' }] }, /no events of that type/],
    ['a name of every object', { format: 'json', subscriptions: [{ type: 'constructor' }] }, /no events of that type/],
    ['another format', { format: 'plain', subscriptions: [{ type: 'router' }] }, /json only/],
    ['no list of subscriptions', { format: 'json' }, /subscribes to nothing/],
    ['null', null, /json only/],
    ['text that is not JSON', 'router', /not JSON/],
  ])('refuses %s with a reason', async (_what, body, reason) => {
    const tool = await connect(admin)
    tool.send(STREAM_REQUEST, body === null ? 'null' : body)

    await expect.poll(() => tool.messages.length).toBe(1)
    const [{ headers, body: text }] = tool.messages as [Message]
    expect(headers.get(RESULT_SUCCESS)?.[0]).toBe(0)
    expect(text.toString()).toMatch(reason)
  })

  it('refuses requests that it does not serve', async () => {
    const tool = await connect(admin)
    tool.send(TOGGLE_PIPE_TRACES)

    await expect.poll(() => tool.messages.length).toBe(1)
    expect(tool.messages[0]!.body.toString()).toMatch(/nothing else/)
  })

  // Tools take nothing but the response to the validation that they request, and show its text.
  it.each([
    ['terminators', 10100],
    ['links', 10103],
    ['terminators of hosts', 10106],
    ['the data model', 10109],
    ['connections of identities', 10112],
    ['terminators of tunnelers', 10115],
    ['circuits', 10118],
    ['controllers', 10122],
  ])('refuses a validation of %s with its own response', async (_what, type) => {
    const tool = await connect(admin)
    tool.send(type)

    await expect.poll(() => tool.messages.length).toBe(1)
    const [{ type: responseType, headers, body }] = tool.messages as [Message]
    expect([responseType, headers.get(REPLY_FOR)?.readInt32LE()]).toEqual([type + 1, 1])
    const text = /nothing else/.exec(body.toString())?.input.slice(2) ?? ''
    expect(body).toEqual(Buffer.concat([Buffer.from([0x12, text.length]), Buffer.from(text)]))
  })

  it('ends the connection for a stream of traces, because tools wait for no response', async () => {
    const tool = await connect(admin)
    tool.send(STREAM_TRACES)

    await expect.poll(() => tool.closeCode).toBe(1008)
  })

  it.each([
    ['text', 'hello', false],
    ['bytes that are not a message', Buffer.from('hello'), true],
    ['a message with a wrong magic number', Buffer.alloc(40), true],
    [
      'a message that claims to be longer',
      encodeMessage({ type: 1, sequence: 1, headers: new Map(), body: Buffer.alloc(0) }).fill(0x7f, 16),
      true,
    ],
  ] as const)('closes the connection for %s', async (_what, bytes, binary) => {
    const tool = await connect(admin)
    tool.socket.send(bytes, { binary })

    await expect.poll(() => tool.closeCode).toBe(1002)
  })

  it('closes the connection for a message that is too long', async () => {
    const tool = await connect(admin)
    tool.socket.send(Buffer.alloc(100_000))

    await expect.poll(() => tool.closeCode).toBe(1009)
  })

  it('is refused to callers without a session, and to those that may read nothing', async () => {
    const { token } = await network.world.signIn({ name: 'a phone' })

    await expect(connect('')).rejects.toThrow('401')
    await expect(connect(token)).rejects.toThrow('401')
  })

  it('serves WebSockets only', async () => {
    const response = await network.world.send({
      method: 'GET',
      path: `${FABRIC}/ws-api`,
      headers: { 'zt-session': admin },
    })

    expect([response.status, response.body.error.code]).toEqual([400, 'NOT_SUPPORTED'])
  })
})

describe('a request for another protocol', () => {
  const ask = async (...lines: string[]) => {
    const socket = await openTls(rawTarget(network.address.url, network.address.rootPem))
    let text = ''
    socket.on('data', (piece: Buffer) => {
      text += piece.toString()
    })
    const ended = new Promise((resolve) => socket.once('close', resolve))
    socket.write(['GET /version HTTP/1.1', 'host: x', 'connection: upgrade', ...lines].join('\r\n'))
    await ended
    return text
  }

  it('is served as any other if that protocol is not a WebSocket, and ends its connection', async () => {
    const text = await ask('upgrade: h2c', '', '')

    expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(text.toLowerCase()).toContain('connection: close')
  })

  it('does not become a WebSocket at an operation that has none', async () => {
    const text = await ask(
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${'A'.repeat(22)}==`,
      '',
      '',
    )

    expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  })

  it('is refused if it has a body', async () => {
    const text = await ask('upgrade: websocket', 'content-length: 4', '', 'abcd')

    expect(text).toMatch(/^HTTP\/1.1 400 /)
  })
})
