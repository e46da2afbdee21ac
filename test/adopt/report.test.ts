// The report of an adoption: records and settings that cannot be adopted as they are, and what becomes of them.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type Adoption, adoptNetwork } from '../../src/adopt.ts'
import { createIntermediate, generateServerKey, issueServerCertificate } from '../../src/pki/authority-certificates.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { toPem } from '../../src/pki/pem.ts'
import { TestClock } from '../world/controller.ts'
import { type EditableBucket, editDatabase } from './edited-database.ts'
import {
  findRecordId,
  NETWORK_TIME,
  type NetworkName,
  readClientFile,
  readNetworkJson,
  unpackNetwork,
} from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'report-'))
afterAll(() => rmSync(folder, { recursive: true }))
let adoptions = 0

interface Changes {
  readonly network?: NetworkName
  readonly records?: (records: EditableBucket) => void
  readonly configuration?: (text: string) => string
  readonly now?: number
}

/** Adopts a network after these changes. */
function adoptChanged({ network = '1.6.5', records, configuration, now = NETWORK_TIME }: Changes): Promise<Adoption> {
  adoptions += 1
  const home = join(folder, String(adoptions))
  const { config, database } = unpackNetwork(network, home)
  if (records) editDatabase(database, records)
  if (configuration) writeFileSync(config, configuration(readFileSync(config, 'utf8')))
  const clock = new TestClock(now)
  return adoptNetwork({ directory: join(home, 'data'), configuration: config, env: {}, clock, osUser: 'operator' })
}

const describeNotes = ({ report }: Adoption) =>
  report.notes.map(({ kind, name, id, problem }) => `${kind} ${name || id}: ${problem}`)

it('names a permission that does not exist here, and adopts the identity with its others', async () => {
  const id = findRecordId('2.0.3', 'identities', 'reader')
  const adoption = await adoptChanged({
    network: '2.0.3',
    records: (records) => records.at('identities', id, 'permissions').add('moon.read'),
  })
  expect(describeNotes(adoption)).toContainEqual(
    'identities reader: its permission moon.read does not exist here: it is left out',
  )
  expect(adoption.report.counts.identities).toEqual({ found: 15, adopted: 15 })
})

it('names a service of the fabric alone, and leaves it out', async () => {
  const adoption = await adoptChanged({
    records: (records) => {
      const service = records.at('services', 'fabric-1')
      service.set('name', 'telemetry')
      service.set('terminatorStrategy', 'smartrouting')
    },
  })
  expect(describeNotes(adoption)).toContainEqual(expect.stringMatching(/^services telemetry: .*fabric alone/))
  expect(adoption.report.counts.services).toEqual({ found: 3, adopted: 2 })
})

it('names a config whose type does not exist, and one whose data its type refuses', async () => {
  const id = findRecordId('1.6.5', 'configs', 'echo-host')
  const adoption = await adoptChanged({
    records: (records) => {
      records.at('configs', id, 'data').set('port', 'eighty')
      records.at('configs', 'lost').set('name', 'lost')
      records.at('configs', 'lost').set('type', 'moon.v1')
      records.at('configs', 'lost', 'data')
    },
  })
  const notes = describeNotes(adoption)
  expect(notes).toContainEqual(expect.stringMatching(/^configs echo-host: .*left out/))
  expect(notes).toContainEqual(expect.stringMatching(/^configs lost: .*left out/))
  expect(notes).toContainEqual(expect.stringMatching(/^services echo: refers to configs .*: the reference is left out/))
})

it('leaves out a policy whose posture check is of an unknown type, because it would grant more without it', async () => {
  const id = findRecordId('1.6.5', 'postureChecks', 'pc-mfa')
  const adoption = await adoptChanged({ records: (records) => records.at('postureChecks', id).set('typeId', 'MOON') })
  const notes = describeNotes(adoption)
  expect(notes).toContainEqual('postureChecks pc-mfa: is of the unknown type MOON: it is left out')
  expect(notes).toContainEqual(expect.stringMatching(/^servicePolicies dial-pc: .*it is left out/))
})

it('disables the identities of an auth policy that requires a signer which is not adopted', async () => {
  const id = findRecordId('1.6.5', 'externalJwtSigners', 'signer-jwks')
  const adoption = await adoptChanged({
    records: (records) => records.at('externalJwtSigners', id).set('jwksEndpoint', null),
  })
  const notes = describeNotes(adoption)
  expect(notes).toContainEqual(expect.stringMatching(/^externalJwtSigners signer-jwks: .*it is left out/))
  expect(notes).toContainEqual(expect.stringMatching(/^authPolicies strict: .*its identities are disabled/))
  expect(notes).toContainEqual(expect.stringMatching(/^identities bob: .*the identity is disabled/))
})

it('names the second of two usernames that differ by case only', async () => {
  const { ziti } = readNetworkJson<{ ziti: Record<string, Record<string, Record<string, string>>> }>('1.6.5', 'dump')
  const password = Object.values(ziti.authenticators ?? {}).find(({ updbUsername }) => updbUsername === 'bobby')
  const adoption = await adoptChanged({
    records: (records) => {
      const copy = records.at('authenticators', 'zzz')
      for (const member of ['method', 'identity', 'updbPassword', 'updbSalt'])
        copy.set(member, password?.[member] ?? '')
      copy.set('updbUsername', 'BOBBY')
    },
  })
  expect(describeNotes(adoption)).toContainEqual(expect.stringMatching(/^authenticators BOBBY: .*left out/))
})

it.each([
  ['of the controller', /^identity:$/m],
  ['of a listener', /^ {4}identity:$/m],
])('names the certificates for browsers %s', async (_, place) => {
  const entry = (begin: string) => {
    const indent = `${/^ */.exec(begin)?.[0] ?? ''}  `
    return `${begin}\n${indent}alt_server_certs:\n${indent}  - server_cert: public.pem\n${indent}    server_key: public.key`
  }
  const adoption = await adoptChanged({ configuration: (text) => text.replace(place, entry) })
  expect(describeNotes(adoption)).toContainEqual(expect.stringContaining('alt_server_certs are not used'))
})

describe('a certificate of an identity', () => {
  /** Adopts the network with another certificate in place of the first one that it issued. */
  async function adoptWith(replace: (der: Buffer) => string): Promise<string[]> {
    const { ziti } = readNetworkJson<{ ziti: Record<string, Record<string, Record<string, unknown>>> }>('1.6.5', 'dump')
    const [id = '', { certPem } = {}] =
      Object.entries(ziti.authenticators ?? {}).find(([, record]) => record.isIssuedByNetwork === true) ?? []
    const pem = replace(new X509Certificate(String(certPem)).raw)
    return describeNotes(
      await adoptChanged({ records: (records) => records.at('authenticators', id).set('certPem', pem) }),
    )
  }

  it.each<[string, (der: Buffer) => string]>([
    ['of another network', () => readClientFile('1.6.5-three-roots', 'client.crt')],
    [
      'whose signature is another one',
      // The last byte is that of the signature.
      (der) => toPem('CERTIFICATE', Buffer.concat([der.subarray(0, -1), Buffer.from([(der.at(-1) ?? 0) ^ 1])])),
    ],
  ])('%s is counted as one that leads to no authority', async (_, replace) => {
    expect(await adoptWith(replace)).toContainEqual(
      expect.stringMatching(/: 1 certificates of identities lead to no authority/),
    )
  })

  it('of another controller of a cluster leads to the root by the authority that is stored with it', async () => {
    const notes = await adoptWith(() => {
      const read = (path: string) =>
        readFileSync(join(import.meta.dirname, '../fixtures/openziti/1.6.5/pki/root-ca', path), 'utf8')
      const root = {
        certificate: new X509Certificate(read('certs/root-ca.cert')),
        key: createPrivateKey(read('keys/root-ca.key')),
      }
      const other = createIntermediate(root, NETWORK_TIME)
      const leaf = issueServerCertificate(other, generateServerKey(), ['device.example.com'], NETWORK_TIME)
      return toCertificatePem(leaf) + toCertificatePem(other.certificate)
    })
    expect(notes.filter((note) => note.includes('lead to no authority'))).toEqual([])
  })

  it('that cannot be read is named', async () => {
    const notes = await adoptWith(() => toPem('CERTIFICATE', Buffer.from([0x30, 3, 1, 1, 1])))
    expect(notes).toContainEqual(expect.stringMatching(/^authenticators .*: its certificate cannot be read/))
  })
})

it('names the routers to restart, the addresses that stay, and the end of the root', async () => {
  const { report } = await adoptChanged({})
  expect(report.tunnelers).toEqual(['router-quickstart'])
  expect(report.advertise).toContain('127.0.0.1:21920')
  expect(report.rootEnds).toContain('2036')
  expect(report.notes.filter(({ problem }) => problem.includes('ends at'))).toEqual([])
})

it('advertises the hosts at which routers and other clients reach the former controller', async () => {
  const { report } = await adoptChanged({
    network: '1.6.5-three-roots',
    configuration: (text) => {
      const home = /^db: (.*)\/db\/ctrl\.db$/m.exec(text)?.[1] ?? ''
      const read = (path: string) => readFileSync(join(home, 'pki', path), 'utf8')
      const issuer = {
        certificate: new X509Certificate(read('signing.pem')),
        key: createPrivateKey(read('sign-int/keys/sign-int.key')),
      }
      const key = createPrivateKey(read('ctrl-int/keys/ctrl-server.key'))
      const server = issueServerCertificate(issuer, key, ['routers.example.com'], NETWORK_TIME)
      writeFileSync(join(home, 'pki/routers.pem'), toCertificatePem(server))
      return text
        .replace(/server_cert: .*ctrl-server.chain.pem/, `server_cert: ${home}/pki/routers.pem`)
        .replace('advertiseAddress: tls:127.0.0.1', 'advertiseAddress: tls:control.example.com')
    },
  })
  expect(report.advertise).toContain('routers.example.com:21930')
  expect(report.advertise).toContain('control.example.com:21930')
})

it('names every root that ends soon, whatever the clock of the machine says', async () => {
  const adoption = await adoptChanged({ network: '1.6.5-three-roots', now: Date.UTC(2034, 0) })
  const roots = describeNotes(adoption).filter((note) => note.includes('the root ends at'))
  expect(roots).toHaveLength(3)
})

it('names the other controllers of a cluster, and the addresses at which clients enrolled with them', async () => {
  const adoption = await adoptChanged({
    network: '2.0.3',
    records: (records) => {
      const other = records.at('controllers', 'instance-2')
      other.set('name', 'controller two')
      const addresses = ['https://two.example.com/edge/client/v1', 'https://two.example.com:1281/edge/client/v1']
      for (const [index, url] of addresses.entries())
        other.at('apiAddresses', 'edge-client', String(index)).set('apiAddresses.url', url)
      records.at('controllers', 'instance-3').set('name', 'controller three')
    },
  })
  const notes = describeNotes(adoption).filter((note) => note.startsWith('controllers'))
  expect(notes).toEqual([
    expect.stringMatching(/^controllers controller two: .*two\.example\.com:443, two\.example\.com:1281.*advertise/),
    expect.stringMatching(/^controllers controller three: has to be switched off$/),
  ])
})
