// A listener without TLS takes requests for names of this machine only: a web page whose name leads here reads nothing.
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { rawTarget, sendRaw } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const plain = { address: '127.0.0.1:0', apis: ['health', 'metrics'], tls: false }
const advertise = ['controller.example.com:1280', '192.0.2.7:1280']
const world = useController({ settings: { listeners: [{ address: '127.0.0.1:0' }, plain], advertise } })
let secure: { url: string; rootPem: string }
let port: number

beforeAll(async () => {
  const listening = await world.listen()
  secure = listening
  port = Number(listening.addresses[1]?.split(':').at(-1))
})

function ask(host: string, path = '/health/live'): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, path, headers: { host }, agent: false }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject)
    request.end()
  })
}

describe('a listener without TLS', () => {
  it.each([
    'attacker.example',
    'attacker.example:80',
    '127.0.0.1.attacker.example',
    'localhost.attacker.example',
    'localhost@attacker.example',
    '192.0.2.8',
    '[2001:db8::1]:80',
    '[::1',
  ])('refuses a request for the host "%s"', async (host) => {
    for (const path of ['/health/live', '/metrics', '/no-such-path']) expect(await ask(host, path)).toBe(400)
  })

  it.each([
    'localhost',
    'LOCALHOST:1281',
    'localhost.',
    'monitor.localhost',
    '127.0.0.1',
    '127.8.9.10:80',
    '[::1]:1281',
  ])('serves a request for the loopback host "%s"', async (host) => {
    expect(await ask(host)).toBe(200)
  })

  it.each(['controller.example.com', 'Controller.Example.com:9', '192.0.2.7'])(
    'serves a request for the advertised host "%s"',
    async (host) => {
      expect(await ask(host)).toBe(200)
    },
  )

  const askRaw = (request: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(request))
      let received = ''
      socket.on('data', (chunk: Buffer) => {
        received += chunk
      })
      socket.on('close', () => resolve(received))
    })

  it('serves a probe of HTTP/1.0, which names no host', async () => {
    expect(await askRaw('GET /health/live HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('refuses a request whose host is empty', async () => {
    const request = 'GET /health/live HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n'
    expect(await askRaw(request)).toMatch(/^HTTP\/1\.1 400 /)
  })
})

it('a listener with TLS serves any host, because its certificate says who it is', async () => {
  const request = 'GET /health/live HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n'
  expect((await sendRaw(rawTarget(secure.url, secure.rootPem), request)).status).toBe(200)
})
