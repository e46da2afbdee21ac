// Sign-ins by certificate again and again: the issuers that a client presents are read from one connection, and judged on each.
import { webcrypto, X509Certificate } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import { beforeEach, expect, it, vi } from 'vitest'
import { issue, makeAuthority, registerAuthority } from '../world/authorities.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { type Device, People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60_000

const world = useControllerPerTest()
let at: { url: string; rootPem: string }
let people: People

beforeEach(async () => {
  at = await world.listen()
  people = await People.in(world)
})

type Presented = Pick<Device, 'chain' | 'key'>

const splitPem = (chain: string): string[] => chain.split(/(?<=-----END CERTIFICATE-----\n)/)

/** Signs in, and returns how often that read all certificates of a connection. */
async function countReadings(presented: Presented): Promise<{ status: number; isImproper: unknown; readings: number }> {
  const { getPeerCertificate } = TLSSocket.prototype
  const port = Number(new URL(at.url).port)
  let readings = 0
  const read = vi.spyOn(TLSSocket.prototype, 'getPeerCertificate').mockImplementation(function (
    this: TLSSocket,
    isDetailed?: boolean,
  ) {
    // The client reads the certificates of the server in the same way.
    if (isDetailed && this.localPort === port) readings += 1
    return getPeerCertificate.call(this, isDetailed as true)
  })
  const { status, body } = await people.signInBy(at, presented)
  read.mockRestore()
  return { status, isImproper: body.data?.improperClientCertChain, readings }
}

/** A device with a certificate of an authority of an operator, below an intermediate that only the device presents. */
async function deviceOfAuthority(intermediateDays: number) {
  const root = await makeAuthority('CN=root of an operator')
  const { id: caId } = await registerAuthority(people, { authority: root })
  const notAfter = new Date(world.clock.now() + intermediateDays * DAY)
  const intermediate = await issue('CN=intermediate of an operator', root, { isAuthority: true, notAfter })
  const leaf = await issue('CN=device of an operator', intermediate)
  const identityId = await people.identity({ enrollment: { ottca: caId } })
  const { enrollment } = await people.manage('GET', `/identities/${identityId}`)
  const chain = leaf.pem + intermediate.pem
  const presented = { chain, key: { csr: '', keyPem: leaf.keyPem, key: undefined as never } }
  const path = `${CLIENT}/enroll?method=ottca&token=${enrollment.ottca.token}`
  const enrolled = await callOverTls(at.url, at.rootPem, { method: 'POST', path, cert: chain, key: leaf.keyPem })
  expect(enrolled.status).toBe(200)
  return { caId, presented }
}

it('the issuers that a device of an operator presents are read at its first sign-in only', async () => {
  const { presented } = await deviceOfAuthority(30)

  const first = await countReadings(presented)
  const second = await countReadings(presented)

  expect(first).toMatchObject({ status: 200, readings: 1 })
  expect(second).toEqual({ ...first, readings: 0 })
})

it('the issuers that a device of the controller presents are not read, because they are known', async () => {
  const device = await people.device()

  expect(await countReadings(device)).toEqual({ status: 200, isImproper: false, readings: 0 })
})

it('no issuers are read if the device presents none', async () => {
  const device = await people.device()
  const [chain = ''] = splitPem(device.chain)

  expect(await countReadings({ ...device, chain })).toEqual({ status: 200, isImproper: true, readings: 0 })
})

it('the issuers of an earlier sign-in do not count as presented if the device presents none', async () => {
  const device = await people.device()
  const [own = ''] = splitPem(device.chain)
  const stranger = await issue('CN=stranger', await makeAuthority('CN=of a stranger'))
  await people.signInBy(at, device)

  const alone = await countReadings({ ...device, chain: own })
  const withStranger = await countReadings({ ...device, chain: own + stranger.pem })

  expect([alone.isImproper, withStranger.isImproper]).toEqual([true, true])
})

it('the issuers of an earlier sign-in do not count as presented if another certificate of their name is', async () => {
  const device = await people.device()
  const [own = ''] = splitPem(device.chain)
  const { subject } = world.controller.authority.intermediate.certificate
  const impostor = await makeAuthority(subject.split('\n').join(', '))
  await people.signInBy(at, device)

  expect(await countReadings({ ...device, chain: own + impostor.pem })).toMatchObject({ status: 200, isImproper: true })
})

/**
 * Has the root of the controller lead to that of an operator, by a certificate that is returned: then the intermediate that devices get
 * leads to no root alone.
 */
async function raiseRoot(): Promise<string> {
  const { authority } = world.controller
  const { root, intermediate } = authority
  const spki = root.publicKey.export({ type: 'spki', format: 'der' })
  const algorithm =
    root.publicKey.asymmetricKeyType === 'rsa'
      ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      : { name: 'ECDSA', namedCurve: 'P-256' }
  const publicKey = await webcrypto.subtle.importKey('spki', spki, algorithm, true, ['verify'])
  const above = await makeAuthority('CN=root of an operator')
  const between = await issue(root.subject.split('\n').join(', '), above, {
    isAuthority: true,
    keys: { publicKey, privateKey: above.keys.privateKey },
  })
  const roots = [new X509Certificate(above.pem)]
  const anchors = [...roots, new X509Certificate(between.pem), intermediate.certificate]
  vi.spyOn(authority, 'trust', 'get').mockReturnValue({ anchors, roots })
  return between.pem
}

it('a device that presents its issuer, but not what is between that and the root, is told so', async () => {
  const device = await people.device()
  const [own = '', issuer = ''] = splitPem(device.chain)
  const between = await raiseRoot()

  const lacking = await countReadings({ ...device, chain: own + issuer })
  const complete = await countReadings({ ...device, chain: own + issuer + between })
  const again = await countReadings({ ...device, chain: own + issuer + between })

  expect(lacking).toMatchObject({ status: 200, isImproper: true })
  expect(complete).toEqual({ status: 200, isImproper: false, readings: 1 })
  expect(again).toEqual({ ...complete, readings: 0 })
})

it('a device signs in as before after it has presented another path', async () => {
  const device = await people.device()
  const [own = ''] = splitPem(device.chain)
  await people.signInBy(at, { ...device, chain: own })

  expect(await countReadings(device)).toMatchObject({ status: 200, isImproper: false })
})

it('a device is refused whose intermediate of an operator has expired since it signed in', async () => {
  const { presented } = await deviceOfAuthority(30)
  const before = [await countReadings(presented), await countReadings(presented)]
  world.clock.advance(31 * DAY)

  const after = await countReadings(presented)

  expect(before.map(({ status, readings }) => [status, readings])).toEqual([
    [200, 1],
    [200, 0],
  ])
  expect(after.status).toBe(401)
})

it('a device is refused whose authority was closed since it signed in', async () => {
  const { caId, presented } = await deviceOfAuthority(30)
  const before = await countReadings(presented)
  await people.manage('PATCH', `/cas/${caId}`, { isAuthEnabled: false })

  const after = await countReadings(presented)

  expect([before.status, after.status]).toEqual([200, 401])
})
