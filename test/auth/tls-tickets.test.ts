// Clients that resume their TLS session by a ticket, over real connections: they are judged as those that prove their key anew.
import { connect, type TLSSocket } from 'node:tls'
import { beforeEach, describe, expect, it } from 'vitest'
import { issue, makeAuthority, registerAuthority } from '../world/authorities.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { type Device, People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60_000
const SIGN_IN = `POST ${CLIENT}/authenticate?method=cert`

const world = useControllerPerTest()
let at: { url: string; rootPem: string; addresses: readonly string[] }
let people: People

beforeEach(async () => {
  await world.controller.ticketKeys.renewDue(world.system)
  at = await world.listen()
  people = await People.in(world)
})

type Presented = Pick<Device, 'chain' | 'key'>

interface Visit {
  readonly status: number
  readonly body: { readonly data?: { readonly improperClientCertChain?: boolean; readonly identityId?: string } }
  readonly isResumed: boolean
  /** The ticket that the server sent last. */
  readonly session: Buffer | undefined
}

interface VisitOptions {
  readonly request?: string
  readonly session?: Buffer | undefined
  readonly version?: 'TLSv1.2' | 'TLSv1.3'
  readonly address?: string | undefined
}

/** One request over a connection of its own, which resumes a session if there is one. */
function visit({ chain, key }: Presented, options: VisitOptions = {}): Promise<Visit> {
  const { request = SIGN_IN, session, version = 'TLSv1.3', address = new URL(at.url).host } = options
  const [host = '', port] = address.split(':')
  return new Promise((resolve, reject) => {
    let ticket: Buffer | undefined
    let text = ''
    let isResumed = false
    const client = { ca: at.rootPem, cert: chain, key: key.keyPem, minVersion: version, maxVersion: version }
    const socket: TLSSocket = connect({ host, port: Number(port), ...client, session }, () => {
      isResumed = socket.isSessionReused()
      const head = `${request} HTTP/1.1\r\nhost: ${address}\r\nconnection: close\r\ncontent-type: application/json\r\n`
      socket.write(`${head}content-length: 2\r\n\r\n{}`)
    })
    socket.setEncoding('utf8')
    socket.on('session', (sent) => {
      ticket = sent
    })
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? []
      const body = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1))
      resolve({ status: Number(status), body, isResumed, session: ticket })
    })
  })
}

/** Signs in by a new session, and returns its ticket. */
async function takeTicket(device: Presented, options: VisitOptions = {}): Promise<Buffer> {
  const { isResumed, status, session } = await visit(device, options)
  expect([isResumed, status]).toEqual([false, 200])
  if (!session) throw new Error('the server sent no ticket')
  return session
}

const show = ({ status, isResumed, body }: Visit) => [status, isResumed, body.data?.improperClientCertChain]

/** A device with a certificate of an authority of an operator, below an intermediate that only the device presents. */
async function deviceOfOperator() {
  const root = await makeAuthority('CN=root of an operator')
  const { id: caId } = await registerAuthority(people, { authority: root })
  const notAfter = new Date(world.clock.now() + 30 * DAY)
  const intermediate = await issue('CN=intermediate of an operator', root, { isAuthority: true, notAfter })
  const leaf = await issue('CN=device of an operator', intermediate)
  const identityId = await people.identity({ enrollment: { ottca: caId } })
  const { enrollment } = await people.manage('GET', `/identities/${identityId}`)
  const presented = {
    chain: leaf.pem + intermediate.pem,
    key: { csr: '', keyPem: leaf.keyPem, key: undefined as never },
  }
  const path = `${CLIENT}/enroll?method=ottca&token=${enrollment.ottca.token}`
  return { caId, identityId, presented, enrollmentPath: path }
}

async function enrolledDeviceOfOperator() {
  const device = await deviceOfOperator()
  const { chain, key } = device.presented
  const call = { method: 'POST', path: device.enrollmentPath, cert: chain, key: key.keyPem }
  expect((await callOverTls(at.url, at.rootPem, call)).status).toBe(200)
  return device
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('over %s', (version) => {
  it('a device that resumes its session signs in as before, also again and again', async () => {
    const device = await people.device()
    const session = await takeTicket(device, { version })

    const second = await visit(device, { version, session })
    const third = await visit(device, { version, session: second.session ?? session })

    expect([second, third].map(show)).toEqual([
      [200, true, false],
      [200, true, false],
    ])
  })

  it('a device whose certificate was deleted is refused if it resumes its session', async () => {
    const device = await people.device()
    const session = await takeTicket(device, { version })
    await people.manage('DELETE', `/authenticators/${device.authenticatorId}`)

    expect(show(await visit(device, { version, session }))).toEqual([401, true, undefined])
  })
})

it('a device that presented its certificate alone has presented no issuer if it resumes its session', async () => {
  const device = await people.device()
  const [chain = ''] = device.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
  await visit(device)
  const session = await takeTicket({ ...device, chain })

  expect(show(await visit({ ...device, chain }, { session }))).toEqual([200, true, true])
})

it('a device whose certificate has expired is refused if it resumes its session', async () => {
  const authPolicyId = await people.policy({ cert: { allowExpiredCerts: false } })
  const device = await people.device({ authPolicyId })
  const session = await takeTicket(device)
  world.clock.advance(400 * DAY)

  expect(show(await visit(device, { session }))).toEqual([401, true, undefined])
})

it('a session stands for the device that it began with, not for the one that resumes it', async () => {
  const [device, other] = [await people.device(), await people.device()]
  const session = await takeTicket(device)

  const { isResumed, body } = await visit(other, { session })

  // The secrets of a session are as good as the key that it began with, whatever the certificate of the client is now.
  expect([isResumed, body.data?.identityId]).toEqual([true, device.id])
})

it('a device resumes its session after a restart, and its issuer still counts as presented', async () => {
  const device = await people.device()
  const session = await takeTicket(device)
  await world.stop()
  await world.reopen()
  at = await world.listen()

  expect(show(await visit(device, { session }))).toEqual([200, true, false])
})

it('a session cannot be resumed for longer than a day, however often it was', async () => {
  const device = await people.device()
  const first = await takeTicket(device)
  world.clock.advance(DAY - 1)
  await world.controller.ticketKeys.renewDue(world.system)
  const before = await visit(device, { session: first })
  world.clock.advance(1)
  await world.controller.ticketKeys.renewDue(world.system)

  const after = await visit(device, { session: before.session })

  expect([before, after].map(show)).toEqual([
    [200, true, false],
    [200, false, false],
  ])
})

it('a key of tickets that the clock of the past made in the future is replaced', async () => {
  const device = await people.device()
  const session = await takeTicket(device)
  world.clock.advance(-DAY)
  await world.controller.ticketKeys.renewDue(world.system)

  expect((await visit(device, { session })).isResumed).toBe(false)
})

it('only the newest key of tickets is stored, and it is encrypted', async () => {
  world.clock.advance(DAY)
  await world.controller.ticketKeys.renewDue(world.system)

  const rows = await world.controller.store.db.selectFrom('ticket_keys').selectAll().execute()

  expect(rows).toHaveLength(1)
  expect(rows[0]?.encryptedKey).toMatch(/^[\da-f]{16}\.[\w-]+$/)
})

it('a session is not resumed at a listener with other APIs', async () => {
  await world.stop()
  const apis = [['client'], ['client'], ['client', 'control']]
  const listeners = apis.map((ofListener) => ({ address: '127.0.0.1:0', apis: ofListener }))
  await world.reopen({ settings: { listeners, advertise: [] } as never })
  at = await world.listen()
  const [first, alike, other] = at.addresses
  const device = await people.device()
  const session = await takeTicket(device, { address: first })

  const visits = [await visit(device, { address: alike, session }), await visit(device, { address: other, session })]

  expect(visits.map(show)).toEqual([
    [200, true, false],
    [200, false, false],
  ])
})

describe('a device of an operator, whose intermediate only the device presents', () => {
  it('signs in by a session that it began without a sign-in', async () => {
    const { presented, enrollmentPath } = await deviceOfOperator()
    const { session } = await visit(presented, { request: `GET ${CLIENT}/version` })
    const enrolled = await visit(presented, { session, request: `POST ${enrollmentPath}` })
    const first = await visit(presented, { request: `GET ${CLIENT}/version` })
    const resumed = await visit(presented, { session: first.session })

    expect(enrolled.status).toBe(200)
    expect([first.status, ...show(resumed)]).toEqual([200, 200, true, false])
  })

  it('is refused if it resumes its session after its authority was closed', async () => {
    const { caId, presented } = await enrolledDeviceOfOperator()
    const session = await takeTicket(presented)
    await people.manage('PATCH', `/cas/${caId}`, { isAuthEnabled: false })

    expect(show(await visit(presented, { session }))).toEqual([401, true, undefined])
  })

  it('is refused if it resumes its session after its intermediate has expired', async () => {
    const { presented } = await enrolledDeviceOfOperator()
    const session = await takeTicket(presented)
    world.clock.advance(31 * DAY)

    expect((await visit(presented, { session })).status).toBe(401)
  })

  it('proves its key and presents its intermediate again to a process that does not have it', async () => {
    const { presented } = await enrolledDeviceOfOperator()
    const session = await takeTicket(presented)
    await world.stop()
    await world.reopen()
    at = await world.listen()

    expect(show(await visit(presented, { session }))).toEqual([200, false, false])
  })
})
