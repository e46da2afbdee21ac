// A listener that carries one API is a boundary: no spelling of a path leads past it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestController, testController } from '../world/controller.ts'
import { type RawTarget, rawTarget, sendRaw } from '../world/raw-requests.ts'

const targets = new Map<string, RawTarget>()
const worlds: TestController[] = []

beforeAll(async () => {
  for (const api of ['client', 'management']) {
    const world = await testController({
      settings: { listeners: [{ address: '127.0.0.1:0', apis: [api], dialect: 'native' }] },
    })
    worlds.push(world)
    const { url, rootPem } = await world.listen()
    targets.set(api, rawTarget(url, rootPem))
  }
})
afterAll(() => Promise.all(worlds.map((world) => world.close())))

async function statusOf(api: string, path: string, method = 'GET'): Promise<number> {
  const response = await sendRaw(
    targets.get(api) as RawTarget,
    `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
  )
  return response.status
}

const MANAGEMENT_SPELLINGS = [
  '/edge/management/v1/version',
  '/edge/%6danagement/v1/version',
  '/%65dge/management/v1/version',
  '/edge//management/v1/version',
  '//edge/management/v1/version',
  '/edge/management/v1/version/',
  '/edge/management/v1//version?a=b',
  '/edge/management/v1/version#a',
  '/edge/management%2Fv1/version',
  'https://localhost/edge/management/v1/version',
  'https://localhost/edge/%6Danagement/v1/version',
]
const CLIENT_SPELLINGS = [
  '/edge/client/v1/version',
  '/edge/clien%74/v1/version',
  '/edge//client/v1/version',
  '/edge/v1/version',
  '/edge/v1//version',
  '/version/',
  '/protocols',
  '/%70rotocols',
  'https://localhost/protocols',
]

describe('a listener for the client API', () => {
  it.each(MANAGEMENT_SPELLINGS)('responds with 404 for %s', async (path) => {
    expect(await statusOf('client', path)).toBe(404)
  })

  it('responds with 404 for existing management paths, for every method', async () => {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
      expect(await statusOf('client', '/edge/%6danagement/v1/identities', method)).toBe(404)
    }
  })

  it.each(['/edge/client/v1/version', '/edge/v1/version', '/protocols'])('serves %s', async (path) => {
    expect(await statusOf('client', path)).toBe(200)
  })
})

describe('a listener for the management API', () => {
  it.each(CLIENT_SPELLINGS)('responds with 404 for %s', async (path) => {
    expect(await statusOf('management', path)).toBe(404)
  })

  it('responds with 404 for existing client paths, for every method', async () => {
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
      expect(await statusOf('management', '/authenticate?method=cert', method)).toBe(404)
    }
  })

  it.each(['/edge/management/v1/version', '/edge/%6danagement/v1/version'])('serves %s', async (path) => {
    expect(await statusOf('management', path)).toBe(200)
  })
})

describe('any listener', () => {
  it.each(['client', 'management'])('for the %s API serves what stands at the root', async (api) => {
    for (const path of ['/', '/version', '/.well-known/est/cacerts']) {
      expect([path, await statusOf(api, path)]).toEqual([path, 200])
    }
  })

  it('says 404 for a path of another API as it does for a path that does not exist', async () => {
    const ask = (path: string) =>
      sendRaw(targets.get('client') as RawTarget, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    const other = JSON.parse((await ask('/edge/management/v1/identities')).text).error
    const none = JSON.parse((await ask('/edge/management/v1/nothing-here')).text).error

    expect(other.code).toBe('NOT_FOUND')
    expect(other.cause.message.replace('identities', 'nothing-here')).toBe(none.cause.message)
  })
})
