// Certificates that cost more to check than to send: what an attempt to sign in by them may cost is counted, not timed.
import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  webcrypto,
  X509Certificate,
} from 'node:crypto'
import { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { issueCertificate, toCertificatePem } from '../../src/pki/certificates.ts'
import { buildChain, SignatureBudget } from '../../src/pki/chains.ts'
import { DerReader, der } from '../../src/pki/der.ts'
import { encodeDistinguishedName } from '../../src/pki/names.ts'
import { parsePemBlocks, toPem } from '../../src/pki/pem.ts'
import { readSigningRequest } from '../../src/pki/requests.ts'
import { clientKey, x509 } from '../world/certificates.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60_000

const world = useController()
let at: { url: string; rootPem: string }
let people: People
let verify: MockInstance<X509Certificate['verify']>

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

beforeEach(() => {
  verify = vi.spyOn(X509Certificate.prototype, 'verify')
})
afterEach(() => verify.mockRestore())

/** DER of an RSA key of that size without a private key, because generating a real one would take minutes. */
function hugeKey(bits: number): Buffer {
  const modulus = randomBytes(bits / 8)
  modulus[0] = 0xff
  modulus[modulus.length - 1] = 0xff
  const key = der.sequence(der.unsigned(modulus), der.integer(65537))
  return der.sequence(der.sequence(der.oid('1.2.840.113549.1.1.1'), der.nothing()), der.bitString(key))
}

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/**
 * Authorities of one name, each signed by the next and the last by itself. Without key identifiers any of them may be the
 * issuer of any other: only checking signatures tells. The most costly order is that in which every issuer comes last.
 */
async function sameNamed(
  count: number,
  name: string,
): Promise<{ bag: X509Certificate[]; lowest: webcrypto.CryptoKeyPair }> {
  const pairs: webcrypto.CryptoKeyPair[] = []
  for (let sequence = 0; sequence < count; sequence++) {
    pairs.push((await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair)
  }
  const bag = pairs.map((pair, at) => forge(name, pair.publicKey, (pairs[at + 1] ?? pair).privateKey, true))
  return { bag: (await Promise.all(bag)).reverse(), lowest: pairs[0] as webcrypto.CryptoKeyPair }
}

/** A certificate that another library signs, by whatever key is given. */
async function forge(
  name: string,
  publicKey: webcrypto.CryptoKey,
  signingKey: webcrypto.CryptoKey,
  isAuthority: boolean,
): Promise<X509Certificate> {
  const now = world.clock.now()
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomBytes(8).toString('hex'),
    subject: isAuthority ? name : 'CN=leaf of an attacker',
    issuer: name,
    notBefore: new Date(now - DAY),
    notAfter: new Date(now + DAY),
    publicKey,
    signingKey,
    signingAlgorithm: ECDSA,
    extensions: [new x509.BasicConstraintsExtension(isAuthority)],
  } as never)
  return new X509Certificate(Buffer.from(certificate.rawData))
}

/** An attacker's own certificate below such authorities, with its key. */
async function hostileBag(count: number, name: string) {
  const { bag, lowest } = await sameNamed(count, name)
  const pair = (await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const leaf = await forge(name, pair.publicKey, lowest.privateKey, false)
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', pair.privateKey))
  return { bag, leaf, key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }) }
}

/** The name of the authority that issues here, as text. */
function ownName(): string {
  const { subject } = new x509.X509Certificate(world.controller.authority.intermediate.certificate.raw)
  return subject
}

const pemOf = (...certificates: readonly X509Certificate[]) => certificates.map(toCertificatePem).join('')

function presented(chain: string, key: KeyObject) {
  return { chain, key: { csr: '', keyPem: key.export({ type: 'pkcs8', format: 'pem' }) as string, key } }
}

describe('a bag of certificates', () => {
  it('of no known authenticator is refused without a signature check', async () => {
    const { bag, leaf, key } = await hostileBag(9, ownName())

    const response = await people.signInBy(at, presented(pemOf(leaf, ...bag), key))

    expect([response.status, response.body.error.code]).toEqual([401, 'INVALID_AUTH'])
    expect(verify).toHaveBeenCalledTimes(0)
  })

  it('beside the certificate of a device costs 20 checks at most, and the device gets in', async () => {
    const device = await people.device()
    const [leaf, intermediate] = device.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const { bag } = await sameNamed(8, ownName())

    const response = await people.signInBy(at, { ...device, chain: `${leaf}${pemOf(...bag)}${intermediate}` })

    expect(response.body.data).toMatchObject({ identityId: device.id, improperClientCertChain: false })
    expect(verify.mock.calls.length).toBeGreaterThan(8)
    expect(verify.mock.calls.length).toBeLessThanOrEqual(20)
  })

  it('that leads from one to the next over more than ten is refused before any of them is checked', async () => {
    const device = await people.device()
    const [leaf] = device.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const { bag } = await sameNamed(10, ownName())

    const tooMany = await people.signInBy(at, { ...device, chain: `${leaf}${pemOf(...bag)}` })
    const checks = verify.mock.calls.length
    const asManyAsAllowed = await people.signInBy(at, { ...device, chain: `${leaf}${pemOf(...bag.slice(1))}` })

    expect([tooMany.status, checks, asManyAsAllowed.status]).toEqual([401, 0, 200])
  })

  it('that the certificate of a device does not lead to costs nothing', async () => {
    const device = await people.device()
    await people.signInBy(at, device)
    const checks = verify.mock.calls.length
    const { bag } = await sameNamed(9, 'CN=noise')

    const response = await people.signInBy(at, { ...device, chain: device.chain + pemOf(...bag) })

    expect([response.status, verify.mock.calls.length - checks]).toEqual([200, 0])
  })

  it('is not taken out of the connection in the way that never frees it', async () => {
    const leaking = vi.spyOn(TLSSocket.prototype, 'getPeerX509Certificate')

    await people.signInBy(at, await people.device())

    expect(leaking).not.toHaveBeenCalled()
    leaking.mockRestore()
  })

  it('whose members may all have issued each other costs 20 checks at most', async () => {
    const { bag, leaf } = await hostileBag(9, 'CN=attacker')

    const chain = buildChain(leaf, bag, [world.controller.authority.root], { now: world.clock.now() })

    expect(chain).toBeUndefined()
    expect(verify.mock.calls.length).toBeLessThanOrEqual(20)
  })

  it('shares its checks among all authorities that are tried', async () => {
    const { bag, leaf } = await hostileBag(9, 'CN=attacker')
    const checks = new SignatureBudget()

    for (let tried = 0; tried < 3; tried++) {
      const { bag: anchors } = await sameNamed(9, 'CN=attacker')
      buildChain(leaf, bag, anchors, { now: world.clock.now(), checks })
    }

    expect(verify).toHaveBeenCalledTimes(16)
  })
})

describe('an authority', () => {
  /** How many signatures of a leaf are checked with an authority whose key has that size. */
  function checksWith(bits: number, role: 'bag' | 'anchor'): number {
    const { privateKey: key, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const times = { notBefore: world.clock.now() - DAY, notAfter: world.clock.now() + DAY }
    const subject = encodeDistinguishedName('attacker', 'huge')
    const huge = issueCertificate({ purpose: 'authority', subject, publicKeyInfo: hugeKey(bits), ...times }, { key })
    const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
    const leaf = issueCertificate({ purpose: 'client', subject, publicKeyInfo, ...times }, { key, certificate: huge })
    verify.mockClear()
    buildChain(leaf, role === 'bag' ? [huge] : [], role === 'anchor' ? [huge] : [], { now: world.clock.now() })
    return verify.mock.calls.length
  }

  it.each([
    ['that was sent, with 4096 bits, is', 4096, 'bag', 1],
    ['that was sent, with 8192 bits, is not', 8192, 'bag', 0],
    ['that was sent, with 1024 bits, is not', 1024, 'bag', 0],
    ['that is trusted, with 8192 bits, is', 8192, 'anchor', 1],
    ['that is trusted, with 16384 bits, is not', 16384, 'anchor', 0],
  ] as const)('%s used for a check', (_what, bits, role, expected) => {
    expect(checksWith(bits, role)).toBe(expected)
  })
})

describe('a signing request', () => {
  /** The request of a client, with another key put in its place. */
  async function requestWith(publicKeyInfo: Buffer): Promise<string> {
    const [block] = parsePemBlocks((await clientKey('huge')).csr)
    const outer = new DerReader(block?.bytes as Buffer).sequence()
    const info = new DerReader(outer.next().content)
    const rest = [outer.next().bytes, outer.next().bytes]
    const [version, subject] = [info.next().bytes, info.next().bytes]
    info.next()
    const body = der.sequence(version, subject, publicKeyInfo, info.next().bytes)
    return toPem('CERTIFICATE REQUEST', der.sequence(body, ...rest))
  }

  it.each([4104, 8192, 16384])(
    'for an RSA key of %i bits is refused for its size, not for its signature',
    async (bits) => {
      const csr = await requestWith(hugeKey(bits))

      expect(() => readSigningRequest(csr)).toThrow(
        expect.objectContaining({ publicCause: { message: expect.stringMatching(/at most 4096 bits/) } }),
      )
    },
  )

  it('with a public exponent of thousands of bits is refused for that', async () => {
    const [modulus, exponent] = [randomBytes(256), randomBytes(250)]
    for (const bytes of [modulus, exponent]) bytes[0] = 0xff
    for (const bytes of [modulus, exponent]) bytes[bytes.length - 1] = 0xff
    const key = der.sequence(der.unsigned(modulus), der.unsigned(exponent))
    const info = der.sequence(der.sequence(der.oid('1.2.840.113549.1.1.1'), der.nothing()), der.bitString(key))

    const csr = await requestWith(info)

    expect(() => readSigningRequest(csr)).toThrow(
      expect.objectContaining({ publicCause: { message: expect.stringMatching(/exponent/) } }),
    )
  })

  it('for the largest key that clients make is taken', async () => {
    const { csr } = await clientKey('largest', 'RSA-4096')

    expect(readSigningRequest(csr).publicKey.asymmetricKeyDetails?.modulusLength).toBe(4096)
  })
})
