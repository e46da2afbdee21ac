// Scripts of other origins: those of the settings use OpenID Connect, and no others, at any of its paths.
import { describe, expect, it } from 'vitest'
import { openIdOperations } from '../../server/operations/openid-connect/operations.ts'
import { useController } from '../world/use-controller.ts'
import { HOST, OIDC_SETTINGS } from './client.ts'

const ORIGIN = 'https://console.example.com'
const FOREIGN = [
  'https://evil.example.com',
  'https://console.example.com.evil.com',
  'http://console.example.com',
  'null',
]

const world = useController({ settings: { ...OIDC_SETTINGS, 'cors.origins': [ORIGIN] } })

const PATHS = [...new Set(openIdOperations.flatMap(({ atRoot = [] }) => atRoot))]
const METHODS = new Map(openIdOperations.flatMap(({ atRoot = [], method }) => atRoot.map((path) => [path, method])))

const ask = (path: string, origin: string, accept: string) =>
  world.send({ method: METHODS.get(path) ?? 'GET', path, headers: { host: HOST, origin, accept } })

const preflight = (path: string, origin: string) =>
  world.send({
    ...{ method: 'OPTIONS', path },
    headers: { host: HOST, origin, 'access-control-request-method': METHODS.get(path) ?? 'GET' },
  })

describe.each(PATHS)('%s', (path) => {
  it.each(FOREIGN)('names no origin to a script of %s', async (origin) => {
    const responses = [
      await ask(path, origin, 'application/json'),
      await ask(path, origin, 'text/html'),
      await preflight(path, origin),
    ]

    for (const { headers } of responses) {
      expect(headers).not.toHaveProperty('access-control-allow-origin')
      expect(headers).not.toHaveProperty('access-control-allow-credentials')
    }
  })

  it('names the origin of the settings to its own scripts', async () => {
    for (const { headers } of [await ask(path, ORIGIN, 'application/json'), await preflight(path, ORIGIN)])
      expect(headers).toMatchObject({ 'access-control-allow-origin': ORIGIN, vary: 'Origin' })
  })
})
