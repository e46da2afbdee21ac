// The inventory of certificates: it follows the records that hold them, and the controller's own files.
import { X509Certificate } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { MANAGEMENT, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { People } from '../world/people.ts'
import { recordingLog } from '../world/recording-log.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60 * 1000

let people: People
const log = recordingLog()
const world = useController({ log })

beforeAll(async () => {
  people = await People.in(world)
  await world.controller.certificates.upkeep.runIfDue(world.system)
})

interface Entry {
  readonly id: string
  readonly kind: string
  readonly subject: string
  readonly fingerprint: string
  readonly notAfter: string
  readonly holderId: string | null
  readonly holderName: string | null
  readonly isCurrent: boolean
  readonly state: string
}

const list = (query = ''): Promise<Entry[]> => people.manage('GET', `/controller/certificates${query}`)
const reports = (holder: string) => log.lines.filter(({ fields }) => fields.holder === holder)
const filtered = (filter: string) => list(`?filter=${encodeURIComponent(filter)}`)

describe('the inventory', () => {
  it("has the controller's own certificates", async () => {
    const own = await filtered('kind = "root" or kind = "intermediate" or kind = "server" sort by notAfter')

    expect(own.map(({ kind, state, isCurrent }) => [kind, state, isCurrent])).toEqual([
      ['server', 'valid', true],
      ['intermediate', 'valid', true],
      ['root', 'valid', true],
    ])
    expect(own[2]?.subject).toContain('CN=Edge Controller Root')
  })

  it('has the certificate of a device, with its holder, until the device is deleted', async () => {
    const device = await people.device({ name: 'laptop 1' })

    const [entry] = await filtered(`holderId = "${device.id}"`)
    await people.manage('DELETE', `/identities/${device.id}`)
    const after = await filtered(`holderId = "${device.id}"`)

    const notAfter = new Date(world.clock.now() + 365 * DAY).toISOString()
    expect(entry).toMatchObject({ kind: 'identity', holderName: 'laptop 1', notAfter, state: 'valid' })
    expect(entry?.subject).toContain(`CN=${device.id}`)
    expect(after).toEqual([])
  })

  it('has nothing of passwords', async () => {
    const person = await people.person()

    expect(await filtered(`holderId = "${person.id}"`)).toEqual([])
  })

  it('has the certificate of a signer, and follows its replacement', async () => {
    const certificateOf = async () => toCertificatePem(new X509Certificate((await people.device()).chain))
    const signer = { name: 'issuer', issuer: 'https://issuer.example', audience: 'us', enabled: true }
    const { id } = await people.manage('POST', '/external-jwt-signers', { ...signer, certPem: await certificateOf() })
    const before = await filtered(`holderId = "${id}"`)
    await people.manage('PATCH', `/external-jwt-signers/${id}`, { certPem: await certificateOf() })
    const after = await filtered(`holderId = "${id}"`)

    expect([...before, ...after]).toMatchObject([
      { kind: 'signer', holderName: 'issuer' },
      { kind: 'signer', holderName: 'issuer' },
    ])
    expect(after[0]?.fingerprint).not.toBe(before[0]?.fingerprint)
  })

  it('cannot be written', async () => {
    expect((await people.ask('POST', '/controller/certificates', { kind: 'root' })).status).toBe(405)
  })

  it('is for administrators', async () => {
    const { token } = await world.signIn()

    for (const path of ['/controller/certificates', '/controller/pki/status', '/controller/pki/missing-root']) {
      const response = await world.send({ method: 'GET', path: MANAGEMENT + path, token })
      expect(response.body.error?.cause?.code ?? response.body.error?.code).toBe('PERMISSION_DENIED')
    }
  })

  it('finds what ends soon by an index', async () => {
    const statement = 'select n from certificates where "notAfter" <= 1 order by "notAfter" asc limit 10'
    const { rows } = await sql
      .raw<{ detail: string }>(`explain query plan ${statement}`)
      .execute(world.controller.store.db)

    expect(rows.map(({ detail }) => detail).join()).toContain('USING')
    expect(rows.map(({ detail }) => detail).join()).not.toContain('TEMP B-TREE')
  })

  it.each(['soon', '30', '-1d', '1y'])('rejects the time %s', async (expiring) => {
    const response = await people.ask('GET', `/controller/certificates?expiring=${expiring}`)

    expect(response.status).toBe(400)
    expect(response.body.error.cause).toMatchObject({ field: 'expiring', value: expiring })
  })
})

describe('the daily check', () => {
  it('reports that the key of the root is required and not in the data directory, and renews the rest', async () => {
    const errors = recordingLog()
    const other = await testController({ log: errors })
    rmSync(join(other.directory, 'pki', 'root.key'))
    const { fingerprint256 } = other.controller.authority.server.certificate

    expectFaults(/ROOT_KEY_MISSING|could not be renewed/)
    other.clock.advance(11 * 365 * DAY)
    await other.controller.certificates.upkeep.runIfDue(other.system)

    const messages = errors.lines.map(({ level, message }) => `${level}: ${message}`)
    expect(messages).toContain('error: the certificates of the controller could not be renewed')
    expect(other.controller.authority.server.certificate.fingerprint256).not.toBe(fingerprint256)
    const { rows } = await sql<{ n: number }>`select count(*) as n from certificates where kind = 'server'`.execute(
      other.controller.store.db,
    )
    expect(rows[0]?.n).toBe(1)
    await other.close()
  })
})

describe('a certificate that ends soon', () => {
  it('is listed first, shown as expiring, and reported once a day', async () => {
    const device = await people.device({ name: 'old device' })
    world.clock.advance(200 * DAY)
    people = await People.in(world, 'administrator of the second year')
    const young = await people.device({ name: 'young device' })
    world.clock.advance(140 * DAY)
    people = await People.in(world, 'administrator of the third year')

    log.lines.length = 0
    await world.controller.certificates.upkeep.runIfDue(world.system)
    await world.controller.certificates.upkeep.runIfDue(world.system)
    const expiring = await list('?expiring=30d')

    expect(expiring.map(({ holderId }) => holderId)).toContain(device.id)
    expect(expiring.map(({ holderId }) => holderId)).not.toContain(young.id)
    expect(expiring.every(({ state }) => state === 'expiring')).toBe(true)
    const reported = reports('old device')
    expect(reported).toHaveLength(1)
    expect(reported[0]).toMatchObject({ fields: { kind: 'identity' }, message: 'a certificate expires soon' })

    world.clock.advance(DAY)
    await world.controller.certificates.upkeep.runIfDue(world.system)
    expect(reports('old device')).toHaveLength(2)
  })

  it('is reported as expired once, and stays in the list', async () => {
    world.clock.advance(30 * DAY)
    people = await People.in(world, 'administrator of the fourth year')
    log.lines.length = 0
    await world.controller.certificates.upkeep.runIfDue(world.system)
    world.clock.advance(2 * DAY)
    await world.controller.certificates.upkeep.runIfDue(world.system)

    expect(reports('old device').length).toBeLessThanOrEqual(1)
    people = await People.in(world, 'administrator of the fifth year')
    const entry = (await list('?expiring=30d')).find(({ holderName }) => holderName === 'old device')
    expect(entry).toMatchObject({ state: 'expired' })
  })
})
