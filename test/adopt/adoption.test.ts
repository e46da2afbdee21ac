// Adoption of networks that OpenZiti's controller made: records, sign-ins, tokens, rights, certificates, and what remains as it was.
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import type { AdoptionReport } from '../../src/adopt/adoption-report.ts'
import { adoptNetwork } from '../../src/adopt.ts'
import { isInitialized } from '../../src/initialize.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { MANAGEMENT, TestClock } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'
import {
  adoptFixture,
  NETWORK_TIME,
  type NetworkName,
  readClientFile,
  readNetworkJson,
  SNAPSHOT,
  unpackNetwork,
} from './networks.ts'

// biome-ignore lint/suspicious/noExplicitAny: records of another program
type AnyRecord = Record<string, any>

const folder = mkdtempSync(join(tmpdir(), 'adoption-'))
afterAll(() => rmSync(folder, { recursive: true }))

const options = (name: string, configuration: string) => ({
  directory: join(folder, `data-${name}`),
  configuration,
  env: {},
  clock: new TestClock(NETWORK_TIME),
  osUser: 'operator',
})

/** The certificate of a client, as the front of a TLS connection presents it. */
function readClientCertificate(name: NetworkName, file: string): X509Certificate[] {
  return parsePemBlocks(readClientFile(name, file)).map(({ bytes }) => new X509Certificate(bytes))
}

describe.each<NetworkName>(['1.6.5', '1.6.5-three-roots', '2.0.3'])('the network of %s', (name) => {
  let report: AdoptionReport
  const world = useController(async () => {
    const adopted = await adoptFixture(name, folder)
    report = adopted.report
    return { directory: adopted.directory, clock: new TestClock(NETWORK_TIME) }
  })
  const dump = readNetworkJson<{ ziti: Record<string, Record<string, AnyRecord>> }>(name, 'dump').ziti

  it('is adopted whole', () => {
    const counts = Object.fromEntries(Object.entries(report.counts).map(([kind, { adopted }]) => [kind, adopted]))
    const expected = Object.fromEntries(
      Object.keys(report.counts).map((kind) => [kind, Object.keys(dump[kind] ?? {}).length]),
    )
    expect(counts).toEqual(expected)
  })

  it('keeps the fingerprint by which each certificate signs in', async () => {
    const [leaf] = readClientCertificate(name, 'client.crt')
    const { body } = await world.send({
      method: 'GET',
      path: `${MANAGEMENT}/authenticators?limit=500`,
      token: await world.admin(),
    })
    const fingerprints = (body.data as AnyRecord[]).map(({ fingerprint }) => fingerprint)
    expect(fingerprints).toContain(computeFingerprint(leaf as X509Certificate))
  })

  it('writes one audit record, which names the database and what was adopted', async () => {
    const rows = await world.controller.store.db
      .selectFrom('audit_records')
      .selectAll()
      .where('resource', '=', 'adoption')
      .execute()
    expect(rows.map(({ actorName, operation }) => [actorName, operation])).toEqual([['operator', 'create']])
    expect(rows[0]?.after).toContain(report.source.digest)
  })

  it('keeps the id by which routers know the controller', () => {
    expect(world.controller.membership.ownId).toBe(report.controllerId)
  })

  it('has whole data, and says what is different', () => {
    const problems = report.notes.map(({ kind, name, problem }) => `${kind} ${name}: ${problem}`)
    const expected = [
      ...(name === '1.6.5-three-roots' ? [expect.stringContaining('the server certificate is replaced')] : []),
      expect.stringContaining('cas acme2: is not verified, and has another verification token'),
    ]
    expect(problems).toEqual(expected)
  })
})

describe('an adoption', () => {
  it('changes nothing of the files that it reads, and makes no controller before it is completed', async () => {
    const { config, database } = unpackNetwork('1.6.5', join(folder, 'source'))
    const before = [statSync(database).mtimeMs, readFileSync(database).toString('base64')]
    const adopting = options('source', config)
    const adoption = await adoptNetwork(adopting)
    expect(isInitialized(adopting.directory)).toBe(false)
    expect([statSync(database).mtimeMs, readFileSync(database).toString('base64')]).toEqual(before)
    adoption.discard()
    expect(existsSync(adopting.directory)).toBe(false)
  })

  it('refuses a directory that holds something', async () => {
    const { config } = unpackNetwork('1.6.5', join(folder, 'used'))
    const adopting = options('used', config)
    mkdirSync(adopting.directory)
    writeFileSync(join(adopting.directory, 'notes.txt'), 'mine')
    await expect(adoptNetwork(adopting)).rejects.toMatchObject({ code: 'NOT_EMPTY' })
    expect(readdirSync(adopting.directory)).toEqual(['notes.txt'])
  })

  it('takes a directory that has what a new file system has at its top, and leaves that there', async () => {
    const { config } = unpackNetwork('1.6.5', join(folder, 'formatted'))
    const adopting = options('formatted', config)
    mkdirSync(join(adopting.directory, 'lost+found'), { recursive: true })
    const adoption = await adoptNetwork(adopting)
    adoption.discard()
    expect(readdirSync(adopting.directory)).toEqual(['lost+found'])
  })

  it('refuses a directory that another adoption fills, and leaves it to that one', async () => {
    const { config } = unpackNetwork('1.6.5', join(folder, 'twice'))
    const adopting = options('twice', config)
    const results = await Promise.allSettled([adoptNetwork(adopting), adoptNetwork(adopting)])
    const adoptions = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    // It is locked, or holds something already.
    expect(reasons.map(({ name }) => name)).toEqual([expect.stringMatching('DirectoryLockedError|DataDirectoryError')])
    adoptions[0]?.complete()
    expect(isInitialized(adopting.directory)).toBe(true)
    expect(readdirSync(adopting.directory)).toContain('controller.db')
  })

  it('leaves nothing behind if the database is damaged', async () => {
    const { config, database } = unpackNetwork('1.6.5', join(folder, 'damaged'))
    const bytes = readFileSync(database)
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 200_000)
    writeFileSync(database, bytes)
    const adopting = options('damaged', config)
    await expect(adoptNetwork(adopting)).rejects.toMatchObject({ code: 'DATABASE_DAMAGED' })
    expect(existsSync(adopting.directory)).toBe(false)
  })

  it('accepts a snapshot of a cluster in place of the database, compressed or not, with its description beside it', {
    timeout: 90_000,
  }, async () => {
    const { config } = unpackNetwork('2.0.3', join(folder, 'snapshot'))
    const snapshot = join(folder, 'snapshot/2-13-1795495334566')
    mkdirSync(snapshot)
    writeFileSync(join(snapshot, 'meta.json'), '{"Version":1,"Index":13,"Term":2}')
    const compressed = readFileSync(SNAPSHOT)
    const reports: AdoptionReport[] = []
    for (const content of [compressed, gunzipSync(compressed)]) {
      writeFileSync(join(snapshot, 'state.bin'), content)
      const adopting = { ...options('snapshot', config), database: join(snapshot, 'state.bin') }
      const { report, discard } = await adoptNetwork(adopting)
      discard()
      reports.push(report)
    }
    expect(reports.map(({ source }) => source.schema)).toEqual([44, 44])
    expect(reports[1]?.counts).toEqual(reports[0]?.counts)
  })

  it.each([
    ['a variable that is not set', 'db: $ZITI_HOME/ctrl.db', 'VARIABLE_MISSING'],
    ['a key of a token', 'key: pkcs11:/usr/lib/p11.so', 'KEY_NOT_A_FILE'],
  ])('names %s', async (_, line, code) => {
    const { config } = unpackNetwork('1.6.5', join(folder, `config-${code}`))
    const [key] = line.split(':')
    const text = readFileSync(config, 'utf8').replaceAll(new RegExp(`^( *)${key}: .*$`, 'gm'), `$1${line}`)
    writeFileSync(config, text)
    await expect(adoptNetwork(options(code, config))).rejects.toMatchObject({ code })
  })
})
