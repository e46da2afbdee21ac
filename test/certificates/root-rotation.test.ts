// The replacement of the root in a running controller: who trusts it, who has fetched the new root, and how it ends.
import { X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { computeFingerprint, toCertificatePem } from '../../src/pki/certificates.ts'
import { isSelfSigned } from '../../src/pki/chains.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { decodeCertificates } from '../../src/pki/pkcs7.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'

const CACERTS = '/.well-known/est/cacerts'

let world: TestController
let people: People
let log: RecordingLog
let url: string
/** The bundle of clients that enrolled before the rotation. */
let oldRootPem: string

beforeEach(async () => {
  log = recordingLog()
  world = await testController({ log })
  people = await People.in(world)
  ;({ url, rootPem: oldRootPem } = await world.listen())
})
afterEach(() => world.close())

const change = (path: string, body?: unknown) => people.ask('POST', `/controller/pki/${path}`, body)
const status = () => people.manage('GET', '/controller/pki/status')

async function missing(): Promise<string[]> {
  const holders: { name: string }[] = await people.manage('GET', '/controller/pki/missing-root')
  return holders.map(({ name }) => name)
}

/** The certificate store, as a client of these roots fetches it. */
async function fetchBundle(rootPem: string, extra: Partial<Parameters<typeof callOverTls>[2]> = {}): Promise<string> {
  const { status, text } = await callOverTls(url, rootPem, { method: 'GET', path: CACERTS, ...extra })
  expect(status).toBe(200)
  return decodeCertificates(text).map(toCertificatePem).join('')
}

/** Marks a router as enrolled. */
const verifyRouter = (id: string) =>
  world.system.write((tx) => tx.db.updateTable('routers').set({ isVerified: 1 }).where('id', '=', id).execute())

const toRoots = (bundle: string) =>
  parsePemBlocks(bundle)
    .map(({ bytes }) => new X509Certificate(bytes))
    .filter(isSelfSigned)
    .map(toCertificatePem)
    .join('')

describe('while the root is being replaced', () => {
  it('clients of the previous root connect, and fetch both roots', async () => {
    await change('rotate-root')

    const bundle = await fetchBundle(oldRootPem)

    const newRootPem = toCertificatePem(world.controller.authority.root)
    expect(newRootPem).not.toBe(oldRootPem)
    expect(toRoots(bundle)).toBe(newRootPem + oldRootPem)
    expect(toRoots(await fetchBundle(newRootPem))).toBe(toRoots(bundle))
  })

  it('devices of the previous root sign in, over connections of either root', async () => {
    const device = await people.device()
    await change('rotate-root')

    for (const rootPem of [oldRootPem, toCertificatePem(world.controller.authority.root)]) {
      const { status, body } = await people.signInBy({ url, rootPem }, device)
      expect(status).toBe(200)
      expect(body.data.improperClientCertChain ?? false).toBe(false)
    }
  })

  it('a device that enrolls now is trusted by what trusts the previous root', async () => {
    await change('rotate-root')

    const device = await people.device()

    const chain = parsePemBlocks(device.chain).map(({ bytes }) => new X509Certificate(bytes))
    const previousRoot = new X509Certificate(oldRootPem)
    expect(chain.some(isSelfSigned)).toBe(false)
    expect(chain.at(-1)?.checkIssued(previousRoot)).toBe(true)
    expect((await people.signInBy({ url, rootPem: oldRootPem }, device)).status).toBe(200)
  })

  it('lists who has not fetched the new root: known by client certificate, by session, or by its enrollment', async () => {
    const byCertificate = await people.device({ name: 'by certificate' })
    const byName = await people.person({ name: 'by session' })
    await people.device({ name: 'never' })
    await people.identity({ name: 'not enrolled' })
    await change('rotate-root')
    await people.device({ name: 'enrolled later' })

    expect(await missing()).toEqual(expect.arrayContaining(['by certificate', 'by session', 'never']))
    await fetchBundle(oldRootPem, { cert: byCertificate.chain, key: byCertificate.key.keyPem })
    const token = await people.sessionOf(byName)
    await fetchBundle(oldRootPem, { path: CLIENT + CACERTS, headers: { 'zt-session': token } })

    const left = await missing()
    expect(left).toContain('never')
    for (const name of ['by certificate', 'by session', 'enrolled later', 'not enrolled']) {
      expect(left).not.toContain(name)
    }
    expect((await status()).totalMissing).toBe(left.length)
  })

  it('stores that a device knows the new root once it has extended its certificate, which the inventory follows', async () => {
    const device = await people.device({ name: 'extended' })
    const list = async (): Promise<{ fingerprint: string }[]> =>
      people.manage('GET', `/controller/certificates?filter=${encodeURIComponent(`holderId = "${device.id}"`)}`)
    const before = await list()
    await change('rotate-root')
    const { token } = (await people.signInBy({ url, rootPem: oldRootPem }, device)).body.data
    const key = await clientKey('extended')
    const path = `${CLIENT}/current-identity/authenticators/${device.authenticatorId}/extend`
    const common = { method: 'POST', headers: { 'zt-session': token }, cert: device.chain, key: device.key.keyPem }

    const { body } = await callOverTls(url, oldRootPem, { ...common, path, body: { clientCertCsr: key.csr } })
    const { clientCert } = body.data
    await callOverTls(url, oldRootPem, { ...common, path: `${path}-verify`, body: { clientCert } })

    expect(await missing()).not.toContain('extended')
    expect(await list()).toMatchObject([{ fingerprint: computeFingerprint(new X509Certificate(clientCert)) }])
    expect(before).toHaveLength(1)
    expect(before[0]?.fingerprint).not.toBe(computeFingerprint(new X509Certificate(clientCert)))
  })

  it('stores nothing for clients that cannot be told apart', async () => {
    await people.device({ name: 'silent' })
    await change('rotate-root')
    const stranger = await clientKey('stranger')

    await fetchBundle(oldRootPem)
    await fetchBundle(oldRootPem, {
      path: CLIENT + CACERTS,
      headers: { 'zt-session': 'f3c1b9de-0000-4000-8000-000000000000' },
    })

    expect(stranger.csr).toContain('CERTIFICATE REQUEST')
    expect(await missing()).toContain('silent')
    const rows = await world.controller.store.db.selectFrom('root_receipts').select('holderId').execute()
    expect(rows).toEqual([])
  })

  it('names the command for each holder: routers enroll again, and devices extend their certificate', async () => {
    await people.device({ name: 'device' })
    await people.person({ name: 'person' })
    for (const plural of ['edge-routers', 'routers']) {
      const { id } = await people.manage('POST', `/${plural}`, { name: `${plural}-1` })
      await verifyRouter(id)
    }
    await change('rotate-root')

    const holders: { name: string; remedy: string }[] = await people.manage('GET', '/controller/pki/missing-root')
    const remedies = Object.fromEntries(holders.map(({ name, remedy }) => [name, remedy]))
    expect(remedies['edge-routers-1']).toMatch(
      /^controller edge-router re-enroll edge-routers-1 --jwt-file .*ziti router enroll/,
    )
    expect(remedies['routers-1']).toMatch(
      /^controller router delete routers-1, then controller router create routers-1 /,
    )
    expect(remedies.device).toBe('controller identity request-extend device')
    expect(remedies.person).toMatch(/controller whoami/)
  })

  it('is told by the log: beginning, each router that lacks the new root, with its command, and the end', async () => {
    const { id } = await people.manage('POST', '/edge-routers', { name: 'edge-1' })
    await verifyRouter(id)

    await change('rotate-root')
    await world.controller.certificates.upkeep.runIfDue(world.system)
    await change('finish-root-rotation', { force: true })

    const lines = log.lines.map(({ message }) => message)
    expect(lines.filter((message) => /root/.test(message))).toEqual([
      'the replacement of the root has begun',
      'a router has not fetched the new root',
      expect.stringContaining('controller pki missing-root'),
      'a router has not fetched the new root',
      expect.stringContaining('controller pki missing-root'),
      'the replacement of the root has ended',
    ])
  })

  it('is told by the log: each router that receives the new root, once, and that all have it', async () => {
    const edge = await people.manage('POST', '/edge-routers', { name: 'edge-1' })
    await people.device({ name: 'device' })
    await verifyRouter(edge.id)
    await change('rotate-root')
    const { receipts, upkeep } = world.controller.certificates
    const before = log.lines.length
    const holders: { id: string; name: string }[] = await people.manage('GET', '/controller/pki/missing-root')
    for (const { id } of [...holders, ...holders]) await receipts.record(world.system, id)
    await upkeep.runIfDue(world.system)

    const lines = log.lines.slice(before).filter(({ message }) => /root/.test(message))
    expect(lines).toHaveLength(holders.length + 1)
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'info',
        fields: { router: 'edge-1' },
        message: 'a router has received the new root',
      }),
    )
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'debug',
        fields: { identity: 'device' },
        message: 'an identity has received the new root',
      }),
    )
    expect(lines.at(-1)?.message).toBe('all have received the new root: controller pki rotate root --finish')
  })

  it('another replacement is rejected', async () => {
    await change('rotate-root')

    const { status, body } = await change('rotate-root')

    expect([status, body.error.code]).toEqual([409, 'ROOT_ROTATION_UNDER_WAY'])
  })

  it('is shown by the status, which survives a restart', async () => {
    const before = await status()
    await change('rotate-root')
    const during = await status()
    await world.stop()
    world = await testController({ directory: world.directory })
    people = await People.in(world, 'administrator after the restart')

    expect(before).toMatchObject({ previousRoot: null, totalMissing: 0 })
    expect(during.previousRoot.fingerprint).toBe(before.root.fingerprint)
    expect(await status()).toMatchObject({
      root: during.root,
      previousRoot: during.previousRoot,
      server: during.server,
    })
    expect(during.trustDomain).toBe(before.trustDomain)
  })
})

describe('the end of the replacement', () => {
  it('is rejected while some have not fetched the new root, unless it is forced', async () => {
    await people.device({ name: 'never' })
    await change('rotate-root')

    const refused = await change('finish-root-rotation')
    const forced = await change('finish-root-rotation', { force: true })

    expect([refused.status, refused.body.error.code]).toEqual([409, 'ROOT_BUNDLE_NOT_FETCHED'])
    expect(forced.status).toBe(200)
    expect(await status()).toMatchObject({ previousRoot: null, totalMissing: 0 })
  })

  it('turns away only clients that know no other root than the previous one', async () => {
    const device = await people.device()
    await change('rotate-root')
    const bundle = toRoots(await fetchBundle(oldRootPem, { cert: device.chain, key: device.key.keyPem }))

    await change('finish-root-rotation', { force: true })

    await expect(callOverTls(url, oldRootPem, { method: 'GET', path: '/version' })).rejects.toThrow()
    const { status } = await people.signInBy({ url, rootPem: bundle }, device)
    expect(status).toBe(200)
    expect(toRoots(await fetchBundle(bundle))).toBe(toCertificatePem(world.controller.authority.root))
  })

  it('is rejected if the root is not being replaced', async () => {
    const { status, body } = await change('finish-root-rotation')

    expect([status, body.error.code]).toEqual([409, 'NO_ROOT_ROTATION'])
  })

  it('keeps the previous root in the inventory, as one that no longer issues', async () => {
    await change('rotate-root')
    await change('finish-root-rotation', { force: true })

    const filter = encodeURIComponent('kind = "root"')
    const roots: { isCurrent: boolean }[] = await people.manage('GET', `/controller/certificates?filter=${filter}`)

    expect(roots.map(({ isCurrent }) => isCurrent).sort()).toEqual([false, true])
  })
})

describe('a rotation', () => {
  it.each(['renew', 'rotate-intermediate', 'rotate-root'])(
    'by %s is audited with old and new certificates',
    async (path) => {
      await world.controller.certificates.own.publish(world.system)
      await change(path)

      const filter = encodeURIComponent('resource = "certificates" sort by id desc')
      const records: { operation: string; actorKind: string; after: { kind: string } | null }[] = await people.manage(
        'GET',
        `/controller/audit?limit=10&filter=${filter}`,
      )

      const [last] = records
      expect(last).toMatchObject({ operation: 'create', actorKind: 'identity' })
      const kinds = records.filter(({ actorKind }) => actorKind === 'identity').map(({ after }) => after?.kind)
      expect(kinds).toContain('server')
    },
  )

  it('of the root is audited at its end, too', async () => {
    await change('rotate-root')
    await change('finish-root-rotation', { force: true })

    const filter = encodeURIComponent('resource = "certificates" sort by id desc')
    const [last]: { after: object }[] = await people.manage('GET', `/controller/audit?limit=1&filter=${filter}`)

    expect(last?.after).toMatchObject({ kind: 'root', isCurrent: false })
  })

  it('without the key of the root says what is missing, and changes nothing', async () => {
    const { rmSync } = await import('node:fs')
    const { join } = await import('node:path')
    rmSync(join(world.directory, 'pki', 'root.key'))
    const before = await status()

    for (const path of ['rotate-intermediate', 'rotate-root']) {
      const { status, body } = await change(path)
      expect([status, body.error.code]).toEqual([409, 'ROOT_KEY_MISSING'])
    }
    expect(await status()).toEqual(before)
  })

  it('is for administrators', async () => {
    const { token } = await world.signIn()

    for (const path of ['renew', 'rotate-intermediate', 'rotate-root', 'finish-root-rotation']) {
      const response = await world.send({ method: 'POST', path: `/edge/management/v1/controller/pki/${path}`, token })
      expect(response.status).toBe(401)
    }
    expect((await status()).previousRoot).toBeNull()
  })
})
