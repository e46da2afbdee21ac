// Adoptions whose source is stated one by one, and the bundles of clients: both instead of what a configuration says.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { AdoptionReport } from '../../src/adopt/adoption-report.ts'
import type { SourceParts } from '../../src/adopt/source-parts.ts'
import { type AdoptOptions, adoptNetwork } from '../../src/adopt.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { TestClock } from '../world/controller.ts'
import { NETWORK_TIME, type UnpackedNetwork, unpackNetwork } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'parts-'))
afterAll(() => rmSync(folder, { recursive: true }))

const network = unpackNetwork('1.6.5', join(folder, 'network'))
const threeRoots = unpackNetwork('1.6.5-three-roots', join(folder, 'three-roots'))
let adoptions = 0
/** For a test that adopts twice. */
const TWO_ADOPTIONS_MS = 90_000

/** Adopts into a directory of its own, which is deleted, and returns the report. */
async function adopt(options: Partial<AdoptOptions>): Promise<AdoptionReport> {
  adoptions += 1
  const common = { configuration: network.config, env: {}, clock: new TestClock(NETWORK_TIME), osUser: 'operator' }
  const adoption = await adoptNetwork({ directory: join(folder, `data-${adoptions}`), ...common, ...options })
  adoption.discard()
  return adoption.report
}

function listParts({ home }: UnpackedNetwork): SourceParts {
  const signer = 'pki/intermediate-ca-quickstart'
  const at = (path: string) => join(home, path)
  return {
    signingCert: at(`${signer}/certs/intermediate-ca-quickstart.cert`),
    signingKey: at(`${signer}/keys/intermediate-ca-quickstart.key`),
    ca: [at('pki/root-ca/certs/root-ca.cert')],
    serverCert: at(`${signer}/certs/server.chain.pem`),
    serverKey: at(`${signer}/keys/server.key`),
    controlCert: at(`${signer}/certs/client.chain.pem`),
    address: '127.0.0.1:21920',
    controlAddress: '127.0.0.1:21920',
  }
}

describe('a source that is stated one by one', { timeout: TWO_ADOPTIONS_MS }, () => {
  it('is adopted as by its configuration', async () => {
    const { database } = network
    const stated = await adopt({ configuration: listParts(network), database })
    const { notes, ...configured } = await adopt({})
    expect(stated).toEqual({ ...configured, notes })
  })

  it('may name its authorities in several files', async () => {
    const pki = (path: string) => join(threeRoots.home, 'pki', path)
    const configuration = {
      ...listParts(threeRoots),
      signingCert: pki('signing.pem'),
      signingKey: pki('sign-int/keys/sign-int.key'),
      ca: [pki('cas.pem'), pki('edge-root/certs/edge-root.cert')],
      serverCert: pki('edge-int/certs/edge-server.chain.pem'),
      serverKey: pki('edge-int/keys/edge-server.key'),
      controlCert: pki('ctrl-int/certs/ctrl-client.chain.pem'),
      address: '127.0.0.1:21930',
      controlAddress: '127.0.0.1:21931',
      listen: '127.0.0.1:21930',
      controlListen: '127.0.0.1:21931',
    }
    const report = await adopt({ configuration, database: threeRoots.database })
    const expected = await adopt({ configuration: threeRoots.config })
    expect(report.controllerId).toBe(expected.controllerId)
    expect(report.listeners.map(({ address }) => address)).toEqual(expected.listeners.map(({ address }) => address))
    expect(report.counts).toEqual(expected.counts)
  })

  it.each<[string, Partial<Record<keyof SourceParts, string>>, string, string]>([
    ['a file that does not exist', { signingKey: 'nowhere.key' }, 'FILE_UNUSABLE', '--signing-key'],
    ['a key of another certificate', { serverKey: 'pki/root-ca/keys/root-ca.key' }, 'KEY_MISMATCH', '--server-key'],
    ['a certificate that is none', { serverCert: 'config/ctrl.yaml' }, 'CERTIFICATE_MISSING', '--server-cert'],
  ])('names the flag of %s', async (_, part, code, flag) => {
    const parts = Object.fromEntries(Object.entries(part).map(([name, path]) => [name, join(network.home, path)]))
    const configuration = { ...listParts(network), ...parts }
    await expect(adopt({ configuration, database: network.database })).rejects.toMatchObject({
      code,
      message: expect.stringContaining(flag),
    })
  })
})

describe('the command without a configuration', () => {
  const adoptWith = (...flags: string[]) =>
    run(process.execPath, [BINARY, 'adopt', '--data-dir', join(folder, 'never'), ...flags], cleanEnvironment())

  it('names every flag that is missing', async () => {
    const { code, stderr } = await adoptWith('--database', network.database, '--signing-cert', 'a.pem')
    expect(code).toBe(2)
    for (const flag of ['signing-key', 'ca', 'server-cert', 'server-key', 'control-cert', 'address', 'control-address'])
      expect(stderr).toContain(`--${flag}`)
    expect(stderr).not.toContain('--signing-cert')
  })

  it('refuses an address without a port', async () => {
    const { address: _, ...files } = listParts(network)
    const names = { signingCert: 'signing-cert', signingKey: 'signing-key', serverCert: 'server-cert' }
    const more = { serverKey: 'server-key', controlCert: 'control-cert', controlAddress: 'control-address' }
    const stated = Object.entries({ ...names, ...more }).flatMap(([part, flag]) => [
      `--${flag}`,
      String(files[part as keyof typeof files]),
    ])
    const { code, stderr } = await adoptWith(
      ...['--database', network.database, '--ca', files.ca[0] ?? '', '--address', 'localhost', ...stated],
    )
    expect([code, stderr]).toEqual([2, expect.stringContaining('--address localhost is not of the form HOST:PORT')])
  })

  it('is not used with one', async () => {
    const { code, stderr } = await adoptWith('--from', network.config, '--address', 'localhost:1280')
    expect([code, stderr]).toEqual([2, expect.stringContaining('--address')])
  })
})

describe('the bundle of a client', () => {
  const pem = readFileSync(join(network.home, 'clients/cas.pem'), 'utf8')
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const identity = (ca: string, ztAPI = 'https://127.0.0.1:21920/edge/client/v1') =>
    JSON.stringify({ ztAPI, id: { key: 'pem:', cert: 'pem:', ca } })
  write('stored.pem', pem)

  it.each([
    ['as PEM', () => write('cas.pem', pem)],
    ['in an identity file', () => write('inline.json', identity(`pem:${pem}`))],
    ['in a file that an identity file names', () => write('named.json', identity('file://stored.pem'))],
  ])('that is stated %s is judged, and accepts the server certificate', async (_, write) => {
    const path = write()
    const { clientBundles, notes } = await adopt({ clientBundles: [path] })
    expect(clientBundles).toEqual([{ path, certificates: 2, objection: null }])
    expect(notes.filter(({ kind }) => kind === 'clients')).toEqual([])
  })

  it('of another network is reported with the reason for which it rejects the server certificate', async () => {
    const path = join(threeRoots.home, 'clients/cas.pem')
    const { clientBundles, notes } = await adopt({ clientBundles: [path] })
    expect(clientBundles).toMatchObject([{ path, objection: expect.stringContaining('unable to get') }])
    expect(notes).toContainEqual(expect.objectContaining({ kind: 'clients', name: path }))
  })

  it('with an address that will not be advertised is reported', async () => {
    const path = write('moved.json', identity(`pem:${pem}`, 'https://old.example.com:443'))
    const { notes } = await adopt({ clientBundles: [path] })
    expect(notes).toContainEqual(
      expect.objectContaining({ name: path, problem: expect.stringContaining('old.example.com:443') }),
    )
  })

  it.each([
    ['without certificates', 'no certificates'],
    ['that is an identity file without authorities', '{"id":{}}'],
    ['with a certificate that cannot be read', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
  ])('%s is refused', async (_, content) => {
    const error = { name: 'SourceError' }
    await expect(adopt({ clientBundles: [write('empty', content)] })).rejects.toMatchObject(error)
  })
})
