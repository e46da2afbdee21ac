// Requests in unusual forms of HTTP: each has one meaning, or is refused with a status that says why.
import { beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type RawTarget, rawTarget, sendRaw } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let target: RawTarget

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
})

const send = (head: readonly string[], body = '') => {
  const length = body === '' ? [] : [`content-length: ${Buffer.byteLength(body)}`]
  return sendRaw(target, `${[...head, ...length, 'connection: close'].join('\r\n')}\r\n\r\n${body}`)
}
const errorOf = ({ text }: { text: string }) => JSON.parse(text).error

describe('a host', () => {
  it.each([
    ['twice', ['host: a', 'host: b']],
    ['twice the same', ['Host: a', 'HOST: a']],
  ])('that is named %s is refused with 400', async (_how, hosts) => {
    const response = await send(['GET /version HTTP/1.1', ...hosts])

    expect(response.status).toBe(400)
    expect(errorOf(response)).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'Host' } })
  })

  it('that is named twice is refused before anything else is judged', async () => {
    const response = await send(['GET /no-such-path HTTP/1.1', 'host: a', 'host: b'])

    expect(response.status).toBe(400)
  })
})

describe('a request target in absolute form', () => {
  it.each([
    ['https://localhost:1280/version', 200],
    ['HTTPS://other.example/edge/client/v1/version?a=b', 200],
    ['http://localhost/version', 200],
    ['https://localhost', 200],
    ['https://localhost?a=b', 200],
    ['https://localhost/edge/management/v1/identities', 401],
    ['https://localhost/edge/management/v1/no-such-path', 404],
  ])('%s responds with %i', async (requestTarget, status) => {
    const response = await send([`GET ${requestTarget} HTTP/1.1`, 'host: localhost'])

    expect(response.status).toBe(status)
  })
})

describe('a method that a path does not have', () => {
  it.each(['TRACE', 'OPTIONS', 'HEAD', 'POST', 'PROPFIND', 'M-SEARCH'])(
    '%s is refused with 405, and Allow lists those it has',
    async (method) => {
      const response = await send([`${method} ${MANAGEMENT}/identities/some-id HTTP/1.1`, 'host: localhost'])

      expect(response.status).toBe(405)
      expect(response.headers.allow?.split(', ').sort()).toEqual(['DELETE', 'GET', 'PATCH', 'PUT'])
    },
  )

  it.each(['TRACE', 'PROPFIND', 'OPTIONS'])('%s is 404 where there is no path', async (method) => {
    const response = await send([`${method} ${MANAGEMENT}/no-such-path HTTP/1.1`, 'host: localhost'])

    expect(response.status).toBe(404)
    expect(response.headers).not.toHaveProperty('allow')
  })

  it.each(['GET', 'TRACE', 'PROPFIND'])('%s is 404 for a path that cannot be decoded', async (method) => {
    expect((await send([`${method} ${MANAGEMENT}/%zz HTTP/1.1`, 'host: localhost'])).status).toBe(404)
  })

  it('never echoes what it was sent', async () => {
    const response = await send(['TRACE /version HTTP/1.1', 'host: localhost', 'net-session: secret-token'])

    expect(response.text).not.toContain('secret-token')
  })

  it('CONNECT is refused with 405', async () => {
    const response = await send(['CONNECT localhost:22 HTTP/1.1', 'host: localhost'])

    expect(response.status).toBe(405)
  })
})

describe('a body with a content coding', () => {
  const authenticate = (coding: string) =>
    send(
      [
        `POST ${CLIENT}/authenticate?method=password HTTP/1.1`,
        'host: localhost',
        'content-type: application/json',
        `content-encoding: ${coding}`,
      ],
      JSON.stringify(ADMIN),
    )

  it.each(['gzip', 'br', 'GZIP', 'identity, gzip', 'unheard-of'])('of %s is refused with 415', async (coding) => {
    const response = await authenticate(coding)

    expect(response.status).toBe(415)
    expect(errorOf(response)).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'Content-Encoding' } })
    expect(response.headers['accept-encoding']).toBe('identity')
  })

  it('of identity is read', async () => {
    expect((await authenticate('identity')).status).toBe(200)
  })
})
