// A year of a running controller, through renewal, the roll-over of its intermediate and the replacement of its root: clients
// that are connected all the time, and keep the bundle of their enrollment, are never turned away without need.
//
// The year ends now, so that the TLS clients, which verify by the real time, see certificates as old as a year makes them.
import { X509Certificate } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { compactVerify, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { initializeDirectory } from '../../src/initialize.ts'
import { computeFingerprint, readNotAfter, readNotBefore, toCertificatePem } from '../../src/pki/certificates.ts'
import { isSelfSigned } from '../../src/pki/chains.ts'
import { decodeCertificates } from '../../src/pki/pkcs7.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, TestClock } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60 * 1000
const STEP_DAYS = 14
const clock = new TestClock(Math.floor((Date.now() - 364 * DAY) / 1000) * 1000)
const start = clock.now()

const directory = join(mkdtempSync(join(tmpdir(), 'a-year-')), 'data')
await initializeDirectory({ directory, settings: {}, clock })
const world = useController({ directory, clock })
let people: People
let url: string
let administrators = 0

beforeAll(async () => {
  await world.controller.certificates.upkeep.runIfDue(world.system)
  await world.controller.membership.announce(world.system, {})
  ;({ url } = await world.listen())
  people = await People.in(world, `administrator ${++administrators}`)
})
afterAll(async () => {
  for (const { agent } of clients) agent.destroy()
})

interface Client {
  readonly name: string
  readonly cert: string
  readonly key: string
  /** The roots that it trusts. */
  ca: string
  /** Keeps one connection open all the time. */
  readonly agent: Agent
  readonly ports: Set<number>
}

const clients: Client[] = []

/** Enrolls as clients do: verifies the JWT by the served certificate, fetches the bundle, and keeps both. */
async function enrollClient(name: string): Promise<Client> {
  const id = await people.identity({ name, enrollment: { ott: true } })
  const { enrollment } = await people.manage('GET', `/identities/${id}`)
  await expectSignedByServer(enrollment.ott.jwt)
  const ca = await fetchRoots((await readServedCertificate()).toString())
  const key = await clientKey(id)
  const response = await callOverTls(url, ca, {
    method: 'POST',
    path: `${CLIENT}/enroll?method=ott&token=${enrollment.ott.token}`,
    body: key.csr,
    headers: { 'content-type': 'application/x-pem-file' },
  })
  expect(response.status).toBe(200)
  const cert = response.body.data.cert
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, cert, key: key.keyPem })
  const client = { name, cert, key: key.keyPem, ca, agent, ports: new Set<number>() }
  clients.push(client)
  return client
}

/** Returns the certificate that the server presents now, trusted or not. */
function readServedCertificate(): Promise<X509Certificate> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw))
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

/** The roots in the certificate store, from a server whose certificate is trusted by itself, as the SDKs do it. */
async function fetchRoots(trusted: string, options: { cert?: string; key?: string } = {}): Promise<string> {
  const path = '/.well-known/est/cacerts'
  const { text } = await (options.cert
    ? callOverTls(url, trusted, { method: 'GET', path, ...options })
    : callWithLeafAlone(path, trusted))
  return decodeCertificates(text).filter(isSelfSigned).map(toCertificatePem).join('')
}

function callWithLeafAlone(path: string, leafPem: string): Promise<{ text: string }> {
  const leaf = new X509Certificate(leafPem)
  return new Promise((resolve, reject) => {
    const options = { agent: false, rejectUnauthorized: false } as const
    const outgoing = request(new URL(path, url), options, (response) => {
      const { raw } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate()
      expect(leaf.raw.equals(raw)).toBe(true)
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ text }))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

async function expectSignedByServer(jwt: string): Promise<void> {
  const served = await readServedCertificate()
  const { kid } = decodeProtectedHeader(jwt)
  await compactVerify(jwt, served.publicKey)
  expect(kid).toBe(computeFingerprint(served))
  const keySet = await world.send({ method: 'GET', path: `${CLIENT}/enroll/jwks` })
  expect(keySet.body.keys.map((key: { kid: string }) => key.kid)).toContain(kid)
}

/** Signs in over the connection that is open all the time. */
function signInOverOpenConnection({ agent, ports }: Client): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(`${CLIENT}/authenticate?method=cert`, url),
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      (response) => {
        ports.add(response.socket.localPort ?? 0)
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      },
    )
    outgoing.on('error', reject)
    outgoing.end('{}')
  })
}

/** Signs in over a new connection, trusting the client's own roots only. */
async function signInAnew({ ca, cert, key }: Client): Promise<number> {
  const path = `${CLIENT}/authenticate?method=cert`
  return (await callOverTls(url, ca, { method: 'POST', path, body: {}, cert, key })).status
}

async function expectServed(): Promise<void> {
  const served = await readServedCertificate()
  expect(readNotBefore(served)).toBeLessThanOrEqual(clock.now())
  expect(readNotAfter(served)).toBeGreaterThan(clock.now())
  const [own] = await people.manage('GET', '/controllers')
  expect(own.fingerprint).toBe(computeFingerprint(served))
}

async function passTo(day: number): Promise<void> {
  while (clock.now() < start + day * DAY) {
    clock.advance(Math.min(STEP_DAYS * DAY, start + day * DAY - clock.now()))
    people = await People.in(world, `administrator ${++administrators}`)
    await world.controller.certificates.upkeep.runIfDue(world.system)
    await expectServed()
    for (const client of clients) {
      expect(await signInOverOpenConnection(client), `${client.name}, connected`).toBe(200)
      expect(await signInAnew(client), `${client.name}, anew`).toBe(200)
    }
  }
}

it('clients that are connected all the time sign in throughout a year of renewals', { timeout: 120_000 }, async () => {
  const rotate = (path: string, body?: unknown) => people.manage('POST', `/controller/pki/${path}`, body)
  const first = await enrollClient('enrolled on the first day')
  const careful = await enrollClient('fetches the bundle again')
  const serverKey = (await readServedCertificate()).publicKey

  await passTo(60)
  await rotate('rotate-intermediate')
  await enrollClient('enrolled under the second intermediate')

  await passTo(150)
  await rotate('rotate-root')
  const late = await enrollClient('enrolled under the second root')

  // The server certificate is renewed by itself in these months, while both roots are trusted.
  await passTo(280)
  careful.ca = await fetchRoots(careful.ca, { cert: careful.cert, key: careful.key })
  await enrollClient('enrolled after the renewal')
  await passTo(340)

  const missing: { name: string }[] = await people.manage('GET', '/controller/pki/missing-root')
  const names = missing.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining([first.name, 'enrolled under the second intermediate']))
  for (const { name } of [careful, late]) expect(names).not.toContain(name)
  await rotate('finish-root-rotation', { force: true })

  // The listed clients are the only ones that have to enroll again; their certificates and connections remain.
  for (const client of clients) {
    expect(await signInOverOpenConnection(client), `${client.name}, connected`).toBe(200)
    if (names.includes(client.name)) await expect(signInAnew(client), client.name).rejects.toThrow()
    else expect(await signInAnew(client), client.name).toBe(200)
  }
  for (const { name } of missing)
    clients.splice(
      Math.max(
        0,
        clients.findIndex((client) => client.name === name),
      ),
      1,
    )
  await passTo(400)

  expect((await readServedCertificate()).publicKey.equals(serverKey)).toBe(true)
  for (const { name, ports } of clients) expect(ports.size, `connections of ${name}`).toBe(1)
})
