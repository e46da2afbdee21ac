// Certificates and requests, held against another implementation.
import { createHash, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Authority } from '../../src/pki/authority.ts'
import { computeFingerprint, readNotAfter, readNotBefore, toCertificatePem } from '../../src/pki/certificates.ts'
import { buildChain } from '../../src/pki/chains.ts'
import { DerReader, der } from '../../src/pki/der.ts'
import { encodeDistinguishedName, formatName } from '../../src/pki/names.ts'
import { parseCertificate } from '../../src/pki/parsed-certificates.ts'
import { toPem } from '../../src/pki/pem.ts'
import { decodeCertificates, encodeCertificateStore } from '../../src/pki/pkcs7.ts'
import { readSigningRequest, type SigningRequest } from '../../src/pki/requests.ts'
import { clientKey, type KeyKind, x509 } from '../world/certificates.ts'

const NOW = Date.UTC(2026, 5, 1)
const YEAR = 365 * 24 * 60 * 60 * 1000

function newAuthority(hosts = ['controller.example', '10.1.2.3', 'fd00::7']) {
  const directory = join(mkdtempSync(join(tmpdir(), 'pki-')), 'pki')
  Authority.make(directory, hosts, NOW)
  return { directory, authority: Authority.load(directory) }
}

const { authority, directory } = newAuthority()

/** A client's certificate as another reader sees it. */
function issued(request: SigningRequest): X509Certificate {
  return new X509Certificate(authority.issueClient(request, NOW).raw)
}

describe('a client certificate', () => {
  it.each(['P-256', 'P-384', 'P-521', 'RSA-2048', 'Ed25519'] as const)(
    'is issued for a %s key',
    async (kind: KeyKind) => {
      const { csr, key } = await clientKey('device', kind)

      const certificate = issued(readSigningRequest(csr))

      expect(certificate.checkPrivateKey(key)).toBe(true)
      expect(certificate.checkIssued(authority.intermediate.certificate)).toBe(true)
      expect(certificate.verify(authority.intermediate.certificate.publicKey)).toBe(true)
    },
  )

  it('reads in another implementation as what it is meant to be', async () => {
    const { csr } = await clientKey('device')

    const certificate = new x509.X509Certificate(authority.issueClient(readSigningRequest(csr), NOW).raw)

    expect(certificate.subject).toBe('O=test, CN=device')
    expect(certificate.issuer).toBe(new x509.X509Certificate(authority.intermediate.certificate.raw).subject)
    expect(certificate.notBefore.getTime()).toBe(NOW - 60_000)
    expect(certificate.notAfter.getTime()).toBe(NOW + YEAR)
    expect(certificate.serialNumber.length).toBe(32)
    expect(certificate.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false)
    expect(certificate.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.clientAuth])
    expect(certificate.getExtension(x509.KeyUsagesExtension)?.usages).toBe(
      x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment | x509.KeyUsageFlags.dataEncipherment,
    )
    await expect(
      certificate.verify({
        publicKey: new x509.X509Certificate(authority.intermediate.certificate.raw).publicKey,
        signatureOnly: true,
      }),
    ).resolves.toBe(true)
  })

  it('drops the alternative names that a request asks for', async () => {
    const { csr } = await clientKey('device')

    const certificate = issued(readSigningRequest(csr))

    expect(certificate.subjectAltName).toBeUndefined()
  })

  it('has a serial number of its own', async () => {
    const request = readSigningRequest((await clientKey('device')).csr)

    const serials = Array.from({ length: 50 }, () => issued(request).serialNumber)

    expect(new Set(serials).size).toBe(50)
  })
})

describe('the server certificate', () => {
  it('names every host, addresses as addresses', () => {
    const { certificate } = authority.server

    expect(certificate.checkHost('controller.example')).toBe('controller.example')
    expect(certificate.checkIP('10.1.2.3')).toBe('10.1.2.3')
    expect(certificate.checkIP('fd00::7')).toBe('fd00::7')
    expect(certificate.checkHost('other.example')).toBeUndefined()
  })

  it('stays as it is while it is fresh', () => {
    const again = Authority.load(directory)

    expect(again.renewDue(['controller.example'], NOW + YEAR / 2)).toEqual([])
    expect(computeFingerprint(again.server.certificate)).toBe(computeFingerprint(authority.server.certificate))
  })

  it.each([
    ['in the last third of its life', ['controller.example'], NOW + 0.7 * YEAR],
    ['after its end', ['controller.example'], NOW + 2 * YEAR],
    ['for a host it does not name', ['new.example'], NOW],
  ])('is issued anew, with the same key, %s', (_when, hosts, now) => {
    const { directory: own, authority: before } = newAuthority()

    Authority.load(own).renewDue(hosts, now)
    const after = Authority.load(own)

    expect(computeFingerprint(after.server.certificate)).not.toBe(computeFingerprint(before.server.certificate))
    expect(after.server.certificate.publicKey.equals(before.server.certificate.publicKey)).toBe(true)
    expect(readNotBefore(after.server.certificate)).toBeLessThan(now)
    expect(readNotAfter(after.server.certificate)).toBeGreaterThan(now)
  })

  it('leads to the root', () => {
    const { root, intermediate, server } = authority

    expect(buildChain(server.certificate, [intermediate.certificate], [root], { now: NOW })).toHaveLength(3)
  })
})

describe('the trust domain', () => {
  it('is the beginning of the SHA-256 of the root', () => {
    const digest = createHash('sha256').update(authority.root.raw).digest('hex')

    expect(authority.trustDomain).toBe(digest.slice(0, 32))
  })

  it('stays the same if another root takes the place of the first', () => {
    const { directory: own, authority: before } = newAuthority()
    copyFileSync(join(directory, 'root.crt'), join(own, 'root.crt'))

    const after = Authority.load(own)

    expect(after.rootFingerprint).not.toBe(before.rootFingerprint)
    expect(after.trustDomain).toBe(before.trustDomain)
  })
})

describe('the files of an authority', () => {
  it('can be read by their owner only', () => {
    const modes = readdirSync(directory).map((name) => statSync(join(directory, name)).mode & 0o777)

    expect(new Set(modes)).toEqual(new Set([0o600]))
    expect(statSync(directory).mode & 0o777).toBe(0o700)
  })
})

describe('a chain', () => {
  const others = [newAuthority().authority, newAuthority().authority]
  const noise = others.flatMap(({ root, intermediate }) => [root, intermediate.certificate])
  const issue = async () => issued(readSigningRequest((await clientKey('leaf')).csr))

  it('is found among certificates that do not belong, in any order', async () => {
    const leaf = await issue()

    const chain = buildChain(leaf, [...noise, authority.intermediate.certificate], [authority.root], { now: NOW })

    expect(chain?.map(computeFingerprint)).toEqual(
      [leaf, authority.intermediate.certificate, authority.root].map(computeFingerprint),
    )
  })

  it('does not lead to the root of another', async () => {
    const other = others[0] as Authority

    expect(buildChain(await issue(), [authority.intermediate.certificate], [other.root], { now: NOW })).toBeUndefined()
  })

  it('does not bridge a gap', async () => {
    expect(buildChain(await issue(), [], [authority.root], { now: NOW })).toBeUndefined()
  })

  it('leaves the dates of the leaf to the caller', async () => {
    const leaf = await issue()
    const late = NOW + 2 * YEAR

    expect(buildChain(leaf, [authority.intermediate.certificate], [authority.root], { now: late })).toBeUndefined()
    expect(
      buildChain(leaf, [authority.intermediate.certificate], [authority.root], { now: late, ignoreLeafDates: true }),
    ).toBeDefined()
  })

  it('never goes over an authority that has expired', async () => {
    const leaf = await issue()
    const muchLater = NOW + 20 * YEAR

    expect(
      buildChain(leaf, [authority.intermediate.certificate], [authority.root], {
        now: muchLater,
        ignoreLeafDates: true,
      }),
    ).toBeUndefined()
  })

  it('never goes over a leaf', async () => {
    const leaf = await issue()
    const below = await issue()

    expect(buildChain(below, [leaf], [leaf], { now: NOW })).toBeUndefined()
  })
})

describe('a certificate that clients present', () => {
  it('is parsed once, and another one is another object', async () => {
    const [first, second] = [await issueFor('first'), await issueFor('second')]

    const parsed = parseCertificate(first)

    expect(parseCertificate(Buffer.from(first))).toBe(parsed)
    expect(parseCertificate(second)).not.toBe(parsed)
    expect(parseCertificate(second).subject).toContain('CN=second')
  })

  it('is refused if it is not a certificate, every time', () => {
    for (let n = 0; n < 2; n++) expect(() => parseCertificate(Buffer.from('nonsense'))).toThrow()
  })

  it('does not fill the memory', async () => {
    const parsed = parseCertificate(await issueFor('early'))
    // Large certificates, which count by their size.
    for (let n = 0; n < 400; n++) parseCertificate(Buffer.concat([authority.root.raw, Buffer.alloc(16_384 + n)]))

    expect(parseCertificate(Buffer.from(parsed.raw))).not.toBe(parsed)
  })

  async function issueFor(commonName: string): Promise<Buffer> {
    return authority.issueClient(readSigningRequest((await clientKey(commonName)).csr), NOW).raw
  }
})

describe('the certificate store', () => {
  it('holds the authorities, in lines of 64 characters without an end', () => {
    const text = encodeCertificateStore(authority.bundle)

    expect(text.endsWith('\n')).toBe(false)
    expect(
      text
        .split('\n')
        .slice(0, -1)
        .every((line) => line.length === 64),
    ).toBe(true)
    expect(decodeCertificates(text).map(computeFingerprint)).toEqual(authority.bundle.map(computeFingerprint))
  })

  it('reads in another implementation', () => {
    const matches = new x509.X509Certificates(encodeCertificateStore(authority.bundle).replaceAll('\n', ''))

    expect(matches.map((certificate) => new X509Certificate(Buffer.from(certificate.rawData)).fingerprint256)).toEqual(
      authority.bundle.map(({ fingerprint256 }) => fingerprint256),
    )
  })
})

describe('DER', () => {
  it.each([
    ['the end of 2049', Date.UTC(2049, 11, 31, 23, 59, 59), '170d3439313233313233353935395a'],
    ['the beginning of 2050', Date.UTC(2050, 0, 1), '180f32303530303130313030303030305a'],
  ])('writes %s as RFC 5280 says', (_when, instant, hex) => {
    expect(der.time(instant).toString('hex')).toBe(hex)
  })

  it.each(['1.2.840.113549.1.1.11', '2.5.29.17', '1.3.101.112', '1.3.6.1.4.1.99999.4294967296'])(
    'writes and reads the OID %s',
    (oid) => {
      expect(new DerReader(der.oid(oid)).oid()).toBe(oid)
    },
  )

  it.each([0, 127, 128, 255, 256, 65_536])('writes and reads content of %i bytes', (length) => {
    expect(new DerReader(der.octetString(Buffer.alloc(length))).next().content).toHaveLength(length)
  })

  it.each(['', '30', '3082', '3005', '3084ffffffff00', '30800000'])(
    'refuses %s, which is cut short or no DER',
    (hex) => {
      expect(() => new DerReader(Buffer.from(hex, 'hex')).sequence()).toThrow(/DER|ends|longer|forbids|expected/)
    },
  )

  it('never throws anything else, whatever is read as a request', async () => {
    const { csr } = await clientKey('fuzzed')
    const bytes = Buffer.from(csr.replace(/-----[^-]+-----|\n/g, ''), 'base64')
    const pem = (content: Buffer) =>
      `-----BEGIN CERTIFICATE REQUEST-----\n${content.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
    for (let at = 0; at < bytes.length; at++) {
      const broken = Buffer.from(bytes)
      broken[at] = (broken[at] as number) ^ 0x55
      try {
        readSigningRequest(pem(broken))
      } catch (error) {
        expect((error as { code: string }).code).toBe('COULD_NOT_PROCESS_CSR')
      }
      expect(() => readSigningRequest(pem(bytes.subarray(0, at)))).toThrow(/request/)
    }
  })
})

describe('the name in a request', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })

  /** A request that its own key has signed, whatever it says. */
  function requestFor(subject: Buffer, key = publicKeyInfo): string {
    const info = der.sequence(der.integer(0), subject, key, der.explicit(0))
    const signature = der.bitString(sign('sha256', info, privateKey))
    const algorithm = der.sequence(der.oid('1.2.840.10045.4.3.2'))
    return toPem('CERTIFICATE REQUEST', der.sequence(info, algorithm, signature))
  }

  const name = (type: Buffer, value: Buffer) => der.sequence(der.set(der.sequence(type, value)))
  const commonName = der.oid('2.5.4.3')
  const unit = der.sequence(der.oid('2.5.4.11'), der.utf8('y'))
  const nameOfTwoValues = der.sequence(der.set(der.sequence(commonName, der.utf8('x')), unit))
  const text = (tag: number, content: Buffer) => Buffer.concat([Buffer.from([tag, content.length]), content])

  it.each([
    ['empty', der.sequence()],
    ['of several parts', encodeDistinguishedName('organization', 'name')],
    ['in UTF-8', name(commonName, der.utf8('Zürich 🏔'))],
    ['in the way of Windows', name(commonName, text(0x1e, Buffer.from('00410042', 'hex')))],
    ['of an old kind of text', name(commonName, text(0x14, Buffer.from([0xe9])))],
  ])('may be %s', (_what, subject) => {
    const certificate = issued(readSigningRequest(requestFor(subject)))

    expect(certificate.raw.includes(subject)).toBe(true)
  })

  it.each([
    ['no name', der.octetString(Buffer.from('x'))],
    ['nonsense', der.sequence(Buffer.from([0xff, 0xff, 0xff]))],
    ['an empty part', der.sequence(der.set())],
    ['a number', name(commonName, der.integer(5))],
    ['broken UTF-8', name(commonName, text(0x0c, Buffer.from([0xff, 0xfe])))],
    ['half a character', name(commonName, text(0x1e, Buffer.from('004100', 'hex')))],
    ['half a pair of characters', name(commonName, text(0x1e, Buffer.from('d83d', 'hex')))],
    ['a kind that does not end', name(Buffer.from([6, 2, 0x55, 0x84]), der.utf8('x'))],
    ['an unknown kind', name(der.utf8('x'), der.utf8('x'))],
    ['more than any client needs', name(commonName, der.utf8('x'.repeat(3_000)))],
  ])('is refused where it is %s', (_what, subject) => {
    expect(() => readSigningRequest(requestFor(subject))).toThrow(/request/)
  })

  it.each([
    ['its parts in reverse order', encodeDistinguishedName('a company', 'a device'), 'CN=a device,O=a company'],
    ['the values of one part with a plus', nameOfTwoValues, 'CN=x+OU=y'],
    ['escaped characters', name(commonName, der.utf8('a, "b" + c; <d> \\')), 'CN=a\\, \\"b\\" \\+ c\\; \\<d\\> \\\\'],
    ['spaces and a hash at the ends', name(commonName, der.utf8(' # ')), 'CN=\\ #\\ '],
    ['a hash at the beginning', name(commonName, der.utf8('#1')), 'CN=\\#1'],
    ['text of two bytes a character', name(commonName, text(0x1e, Buffer.from('004100fc', 'hex'))), 'CN=Aü'],
    ['text of one byte a character', name(commonName, text(0x14, Buffer.from([0xe9]))), 'CN=é'],
    ['the DER of an attribute without a short name', name(der.oid('1.2.3'), der.utf8('x')), '1.2.3=#0c0178'],
    ['nothing for an empty name', der.sequence(), ''],
  ])('is written as text with %s', (_what, subject, expected) => {
    expect(formatName(subject)).toBe(expected)
  })

  it('is refused, or can be read in the certificate, whichever of its bytes is another', () => {
    const subject = der.sequence(
      ...[der.utf8('üx'), text(0x13, Buffer.from('US')), text(0x1e, Buffer.from('0041', 'hex'))].map((value) =>
        der.set(der.sequence(commonName, value)),
      ),
    )
    for (let at = 0; at < subject.length; at++) {
      for (const flip of [0x01, 0x04, 0x10, 0x55, 0x80, 0xff]) {
        const broken = Buffer.from(subject)
        broken[at] = (broken[at] as number) ^ flip
        let request: SigningRequest | undefined
        try {
          request = readSigningRequest(requestFor(broken))
        } catch (error) {
          expect((error as { code: string }).code).toBe('COULD_NOT_PROCESS_CSR')
        }

        if (request) expect(issued(request).ca).toBe(false)
      }
    }
  })

  it('fails for a key that is not a point of its curve', () => {
    const elsewhere = Buffer.from(publicKeyInfo)
    elsewhere[elsewhere.length - 1] = (elsewhere.at(-1) as number) ^ 1

    expect(() => readSigningRequest(requestFor(der.sequence(), elsewhere))).toThrow(/request/)
  })
})

it('a certificate survives being written as PEM', () => {
  expect(new X509Certificate(toCertificatePem(authority.root)).fingerprint256).toBe(authority.root.fingerprint256)
})
