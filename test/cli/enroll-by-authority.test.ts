// `controller enroll` with certificates of other authorities, from PEM files and from PKCS #12 bundles.
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { operations } from '../../server/operations/operations.ts'
import { errors } from '../../src/foundation/errors.ts'
import {
  issue,
  makeAuthority,
  type RegisteredTestAuthority,
  registerAuthority,
  type TestCertificate,
} from '../world/authorities.ts'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import type { KeyKind } from '../world/certificates.ts'
import { commandLine } from '../world/command-line.ts'
import { MANAGEMENT } from '../world/controller.ts'
import {
  enrollmentToken,
  type ReachableController,
  reachableController,
  readIdentityFileText,
  signInByFile,
  writeToken,
} from '../world/enrollments.ts'
import { expectFaults } from '../world/faults.ts'
import { lacks } from '../world/machine.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'

const hasOpenssl = spawnSync('openssl', ['version']).status === 0
if (!hasOpenssl) process.stdout.write('SKIPPED: there is no openssl here\n')

const env = cleanEnvironment()
let network: ReachableController
let authority: RegisteredTestAuthority
/** Whether the response of the next enrollment is lost. */
let isResponseLost = false

beforeAll(async () => {
  network = await reachableController({
    operations: operations.map((operation) =>
      operation.id === 'enroll'
        ? {
            ...operation,
            async run(call) {
              const response = await operation.run(call)
              if (isResponseLost) throw errors.TIMEOUT()
              return response
            },
          }
        : operation,
    ),
  })
  authority = await registerAuthority(network.people, { identityNameFormat: '[requestedName]' })
})
afterAll(() => network?.stop())

const enroll = (...args: string[]) => commandLine(['enroll', ...args], env)

function expectRefused({ code, stdout, stderr }: Finished, exitCode: number, reason: RegExp) {
  expect(stderr).toMatch(reason)
  expect(code).toBe(exitCode)
  expect(stdout).toBe('')
}

/** A folder with an `ottca` token of a new identity, and the files of a certificate. */
async function prepare(certificate: TestCertificate) {
  const { identityId, folder, file } = await enrollmentToken(network.people, { ottca: authority.id })
  const paths = writeCertificate(folder, certificate)
  return { identityId, folder, token: file, out: join(folder, 'laptop.json'), ...paths }
}

function writeCertificate(folder: string, { pem, keyPem }: TestCertificate) {
  const [cert, key] = [join(folder, 'laptop.crt'), join(folder, 'laptop.key')]
  writeFileSync(cert, pem)
  writeFileSync(key, keyPem)
  return { cert, key, flags: ['--cert', cert, '--key', key] }
}

const leaf = (kind: KeyKind = 'P-256', issuer: TestCertificate = authority) =>
  issue('CN=laptop, O=test', issuer, { kind })

describe('a token of the method ottca', () => {
  it.each<KeyKind>(['P-256', 'P-384', 'RSA-2048', 'Ed25519'])('enrolls a certificate with a %s key', async (kind) => {
    const certificate = await leaf(kind)
    const { identityId, token, out, flags } = await prepare(certificate)

    const { code, stderr } = await enroll(token, ...flags)

    const { id } = readIdentityFileText(out)
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(id.cert.trim()).toBe(`pem:${certificate.pem.trim()}`)
    expect(id.ca).toContain(network.rootPem)
    expect((await signInByFile(network, out)).body.data.identity.id).toBe(identityId)
  })

  it('enrolls a certificate with the intermediate behind it', async () => {
    const intermediate = await issue('CN=Intermediate, O=test', authority, { isAuthority: true })
    const certificate = await leaf('P-256', intermediate)
    const { identityId, token, out, flags } = await prepare({ ...certificate, pem: certificate.pem + intermediate.pem })

    expect((await enroll(token, ...flags)).code).toBe(0)

    expect((await signInByFile(network, out)).body.data.identity.id).toBe(identityId)
  })

  it('is refused without a certificate, and with one of another authority; nothing is written', async () => {
    const { folder, token, flags } = await prepare(await leaf('P-256', await makeAuthority()))
    const before = readdirSync(folder)

    expectRefused(await enroll(token), 2, /missing flags --cert and --key, or --pkcs12/)
    expectRefused(await enroll(token, ...flags), 2, /certificates of this authority cannot be enrolled\nTry: /)

    expect(readdirSync(folder)).toEqual(before)
  })

  it('is not used up by a certificate that is refused', async () => {
    const { folder, token, flags } = await prepare(await leaf('P-256', await makeAuthority()))
    await enroll(token, ...flags)

    expect((await enroll(token, ...writeCertificate(folder, await leaf()).flags)).code).toBe(0)
  })

  it.each<[what: string, change: (paths: Record<'cert' | 'key', string>) => void | Promise<void>, reason: RegExp]>([
    [
      'the key of another certificate',
      async ({ key }) => writeFileSync(key, (await leaf()).keyPem),
      /the key does not belong to the certificate/,
    ],
    ['a key that is text', ({ key }) => writeFileSync(key, 'hello'), /is not a private key in PEM/],
    ['a certificate that is text', ({ cert }) => writeFileSync(cert, 'hello'), /unreadable certificate/],
    [
      'a key without a certificate',
      ({ cert, key }) => writeFileSync(cert, readFileSync(key)),
      /unreadable certificate/,
    ],
  ])('is refused with %s', async (_what, change, reason) => {
    const { token, flags, cert, key } = await prepare(await leaf())
    await change({ cert, key })

    expectRefused(await enroll(token, ...flags), 2, reason)
  })

  it('is refused with half of the flags, and with files that do not exist', async () => {
    const { token, cert } = await prepare(await leaf())

    expectRefused(await enroll(token, '--cert', cert), 2, /--key/)
    expectRefused(await enroll(token, '--cert', '/nowhere', '--key', cert), 2, /--cert cannot be read/)
    expectRefused(await enroll(token, '--pkcs12', cert, '--cert', cert, '--key', cert), 2, /exclude each other/)
  })

  it.skipIf(lacks('openssl', hasOpenssl))(
    'is refused with an encrypted key, with the command that decrypts it',
    async () => {
      const { token, flags, key } = await prepare(await leaf())
      execFileSync('openssl', ['pkey', '-in', key, '-aes256', '-passout', 'pass:secret', '-out', `${key}.new`])
      writeFileSync(key, readFileSync(`${key}.new`))

      expectRefused(await enroll(token, ...flags), 2, /laptop\.key is encrypted\nTry: openssl pkey -in \S+laptop\.key/)
    },
  )
})

describe('an enrollment whose response was lost', () => {
  beforeEach(() => {
    isResponseLost = true
    expectFaults(/TIMEOUT/)
  })

  it('is complete, because the certificate signs in', async () => {
    const { token, out, flags, identityId } = await prepare(await leaf())

    const { code, stderr } = await enroll(token, ...flags)

    expect([code, stderr]).toEqual([0, 'The certificate is enrolled already.\n'])
    expect((await signInByFile(network, out)).body.data.identity.id).toBe(identityId)
  })

  it('can be repeated with the same certificate, and not with another', async () => {
    const { folder, token, out, flags, identityId } = await prepare(await leaf())
    await enroll(token, ...flags)
    isResponseLost = false

    const same = await enroll(token, ...flags, '--force')
    const other = await enroll(token, ...writeCertificate(folder, await leaf()).flags, '--force')

    expect(same.code).toBe(0)
    expectRefused(other, 2, /was used already/)
    expect((await signInByFile(network, out)).body.data.identity.id).toBe(identityId)
  })
})

describe('a token of the method ca', () => {
  async function authorityToken() {
    const { text } = await network.world.send({
      method: 'GET',
      path: `${MANAGEMENT}/cas/${authority.id}/jwt`,
      token: network.people.token,
    })
    const { folder, file } = writeToken(text)
    return { folder, token: file, out: join(folder, 'laptop.json') }
  }

  it('creates an identity with the requested name', async () => {
    const { folder, token, out } = await authorityToken()
    const { flags } = writeCertificate(folder, await leaf())

    const { code, stdout } = await enroll(token, ...flags, '--name', 'truck 7', '-o', 'json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ method: 'ca', identityFile: out })
    expect((await signInByFile(network, out)).body.data.identity.name).toBe('truck 7')
  })

  it('enrolls many certificates, and each of them once', async () => {
    const { folder, token } = await authorityToken()
    const outs = ['a', 'b', 'c'].map((name) => join(folder, `${name}.json`))
    const [first, second] = [await leaf(), await leaf()]

    const results = [
      await enroll(token, ...writeCertificate(folder, first).flags, '--out', outs[0] ?? ''),
      await enroll(token, ...writeCertificate(folder, second).flags, '--out', outs[1] ?? ''),
      await enroll(token, ...writeCertificate(folder, first).flags, '--out', outs[2] ?? ''),
    ]

    const identities = await Promise.all(
      outs.map(async (out) => (await signInByFile(network, out)).body.data.identity.id),
    )
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(results[2]?.stderr).toBe('The certificate is enrolled already.\n')
    expect(identities[0]).toBe(identities[2])
    expect(identities[0]).not.toBe(identities[1])
  })

  it('is refused with a certificate of an unknown authority', async () => {
    const { folder, token } = await authorityToken()
    const { flags } = writeCertificate(folder, await leaf('P-256', await makeAuthority()))

    expectRefused(await enroll(token, ...flags), 2, /certificates of this authority cannot be enrolled/)
  })
})

describe.skipIf(lacks('openssl', hasOpenssl))('a PKCS #12 bundle', () => {
  const PASSWORD = 'open sesame'

  async function prepareBundle(kind: KeyKind, password = PASSWORD, options: readonly string[] = []) {
    const intermediate = await issue('CN=Bundled, O=test', authority, { isAuthority: true })
    const prepared = await prepare(await leaf(kind, intermediate))
    const { folder, cert, key } = prepared
    const [others, bundle, passwordFile] = ['others.pem', 'laptop.p12', 'password'].map((name) =>
      join(folder, name),
    ) as [string, string, string]
    writeFileSync(others, intermediate.pem)
    writeFileSync(passwordFile, `${password}\n`)
    const words = ['-export', '-in', cert, '-inkey', key, '-certfile', others, '-out', bundle, ...options]
    execFileSync('openssl', ['pkcs12', ...words, '-passout', `pass:${password}`])
    return {
      ...prepared,
      bundle,
      passwordFile,
      bundleFlags: ['--pkcs12', bundle, '--pkcs12-password-file', passwordFile],
    }
  }

  it.each<[what: string, options: readonly string[]]>([
    ['as OpenSSL writes it', []],
    ['with an older encryption', ['-certpbe', 'PBE-SHA1-3DES', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']],
  ])('with an RSA key is enrolled with its chain, %s', async (_what, options) => {
    const { identityId, token, out, bundleFlags } = await prepareBundle('RSA-2048', PASSWORD, options)

    const { code, stderr } = await enroll(token, ...bundleFlags)

    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(readIdentityFileText(out).id.cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect((await signInByFile(network, out)).body.data.identity.id).toBe(identityId)
  })

  it('is opened with a password from a prompt', async () => {
    const { token, out, bundle } = await prepareBundle('RSA-2048')

    const { screen, code } = await onTerminal(['enroll', token, '--pkcs12', bundle], env, {
      inputs: [['Password of', `${PASSWORD}${ENTER}`]],
    })

    expect(plainText(screen)).toMatch(/Enrolled at/)
    expect(code).toBe(0)
    expect((await signInByFile(network, out)).status).toBe(200)
  })

  it('is refused with a wrong password', async () => {
    const { token, passwordFile, bundleFlags } = await prepareBundle('RSA-2048')
    writeFileSync(passwordFile, 'mistaken\n')

    expectRefused(await enroll(token, ...bundleFlags), 2, /laptop\.p12 cannot be opened: wrong password/)
  })

  it('with a password that is not ASCII is refused, with the command that converts it', async () => {
    const { token, bundleFlags } = await prepareBundle('RSA-2048', 'öffne dich')

    expectRefused(await enroll(token, ...bundleFlags), 2, /characters that are not ASCII\nTry: openssl pkcs12 -in /)
  })

  it('with another kind of key is refused, and the command that converts it leads on', async () => {
    const { token, out, bundle, bundleFlags, folder } = await prepareBundle('P-256')

    const refused = await enroll(token, ...bundleFlags)
    const converted = join(folder, 'converted.pem')
    const convert = ['pkcs12', '-in', bundle, '-noenc', '-out', converted, '-passin', `pass:${PASSWORD}`]
    execFileSync('openssl', convert)
    const { code } = await enroll(token, '--cert', converted, '--key', converted)

    expectRefused(
      refused,
      2,
      /only RSA keys can be read .*\nTry: openssl pkcs12 -in \S+laptop\.p12 -noenc -out FILE\.pem/,
    )
    expect(code).toBe(0)
    expect((await signInByFile(network, out)).status).toBe(200)
  })

  it('is refused if it is something else, or has no key', async () => {
    const { token, cert, bundle, bundleFlags } = await prepareBundle('RSA-2048')
    const words = ['pkcs12', '-export', '-nokeys', '-in', cert, '-out', bundle, '-passout', `pass:${PASSWORD}`]
    execFileSync('openssl', words)
    const withoutKey = await enroll(token, ...bundleFlags)
    writeFileSync(bundle, 'hello')

    expectRefused(withoutKey, 2, /must contain one private key, not 0/)
    expectRefused(await enroll(token, ...bundleFlags), 2, /is not a PKCS #12 bundle/)
  })
})
