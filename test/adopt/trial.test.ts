// The trial of an adopted network: the former controller can take it back, because no certificate is renewed that it would not know.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { adoptNetwork } from '../../src/adopt.ts'
import type { ConnectedRouter } from '../../src/network/routers/connected-routers.ts'
import { Authority } from '../../src/pki/authority.ts'
import { readNotAfter } from '../../src/pki/certificates.ts'
import { readConfig } from '../../src/settings/config.ts'
import { ConfigError } from '../../src/settings/setting-types.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, TestClock } from '../world/controller.ts'
import { ROUTER_NAMES } from '../world/router/enrolled-router.ts'
import { useController } from '../world/use-controller.ts'
import { findRecordId, NETWORK_TIME, readClientFile, unpackNetwork } from './networks.ts'

const DAY = 24 * 60 * 60_000
const HOSTS = ['localhost']

const folder = mkdtempSync(join(tmpdir(), 'trial-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('a network on trial', () => {
  const world = useController(async () => {
    const { config } = unpackNetwork('1.6.5', join(folder, 'network'))
    const directory = join(folder, 'data')
    const clock = new TestClock(NETWORK_TIME)
    const source = { directory, configuration: config, env: {}, clock, osUser: 'operator' }
    const { report, complete } = await adoptNetwork({ ...source, trialMs: 14 * DAY })
    expect(report.trialEnds).toBe('2026-12-07T03:00:00.000Z')
    complete()
    return { directory, clock }
  })
  const routerId = findRecordId('1.6.5', 'routers', 'router-quickstart')
  let url: string

  beforeAll(async () => {
    url = (await world.listen()).url
  })
  beforeEach(() => {
    world.clock.set(NETWORK_TIME - world.clock.now())
  })

  async function extend(): Promise<[status: number, code: string | undefined]> {
    const ca = readClientFile('1.6.5', 'cas.pem')
    const client = { cert: readClientFile('1.6.5', 'client.crt'), key: readClientFile('1.6.5', 'client.key') }
    const post = (path: string, body: unknown, headers = {}) =>
      callOverTls(url, ca, { method: 'POST', path: CLIENT + path, body, headers, ...client })
    const signedIn = (await post('/authenticate?method=cert', {})).body.data
    const path = `/current-identity/authenticators/${signedIn.authenticatorId}/extend`
    const { csr } = await clientKey('client')
    const { status, body } = await post(path, { clientCertCsr: csr }, { 'zt-session': signedIn.token })
    return [status, body.error?.code]
  }

  async function renewRouter(): Promise<unknown> {
    const request = async () => (await clientKey(routerId, 'P-256', ROUTER_NAMES)).csr
    const requests = { certCsr: await request(), serverCertCsr: await request() }
    const router = { id: routerId, isEdge: true } as ConnectedRouter
    return world.controller.routers.renewal.request(world.system, router, requests)
  }

  async function rotate(authority: 'intermediate' | 'root'): Promise<[status: number, code: string | undefined]> {
    const path = `${MANAGEMENT}/controller/pki/rotate-${authority}`
    const { status, body } = await world.send({ method: 'POST', path, token: await world.admin(), body: {} })
    return [status, body.error?.code]
  }

  it('extends no certificate of an identity', async () => {
    expect(await extend()).toEqual([409, 'CAN_NOT_UPDATE_AUTHENTICATOR'])
  })

  it('renews no certificate of a router', async () => {
    await expect(renewRouter()).rejects.toThrow('on trial')
  })

  it.each(['intermediate', 'root'] as const)('does not replace the %s', async (authority) => {
    expect(await rotate(authority)).toEqual([409, 'ADOPTION_ON_TRIAL'])
  })

  it('does all of it after the trial', async () => {
    world.clock.set(15 * DAY)
    expect((await extend())[0]).toBe(200)
    expect(await renewRouter()).toHaveProperty('cert')
    expect((await rotate('intermediate'))[0]).toBe(200)
  })
})

describe('an authority on trial', () => {
  const directory = join(folder, 'authority')
  Authority.make(directory, HOSTS, NETWORK_TIME)
  const authority = Authority.load(directory)
  const almostEnded = readNotAfter(authority.intermediate.certificate) - 10 * DAY

  it('replaces its intermediate only if that ends within the trial', () => {
    expect(authority.renewDue(HOSTS, almostEnded, almostEnded + 5 * DAY)).toEqual(['server'])
    expect(authority.renewDue(HOSTS, almostEnded, almostEnded + 20 * DAY)).toEqual(['intermediate', 'server'])
  })
})

it('refuses the end of a trial that is not a time', () => {
  const read = (value: unknown) => readConfig(undefined, {}, { 'adoption.trialEnds': value })
  expect(read('2026-12-01T00:00:00Z')['adoption.trialEnds']).toBe(Date.UTC(2026, 11))
  for (const value of ['tomorrow', 14, '14d', '2026-13-01T00:00:00Z']) expect(() => read(value)).toThrow(ConfigError)
})
