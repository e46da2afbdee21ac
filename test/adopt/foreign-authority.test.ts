// Certificates, secrets and passwords of another program's making, as an adopted network has them.
import { execFileSync, spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readSourceAuthority } from '../../src/adopt/source-authority.ts'
import { SourceConfiguration } from '../../src/adopt/source-configuration.ts'
import { PasswordHasher } from '../../src/authentication/credentials/password-hasher.ts'
import { findStep } from '../../src/authentication/mfa/totp-codes.ts'
import {
  generateServerKey,
  isRootDue,
  isServerCertificateDue,
  issueServerCertificate,
} from '../../src/pki/authority-certificates.ts'
import { readNotAfter, toCertificatePem } from '../../src/pki/certificates.ts'
import { ANONYMOUS } from '../../src/storage/transactions/context.ts'
import { lacks } from '../world/machine.ts'
import { NETWORK_TIME, unpackNetwork } from './networks.ts'

const hasOpenssl = spawnSync('openssl', ['version']).status === 0
const folder = mkdtempSync(join(tmpdir(), 'foreign-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { home } = unpackNetwork('1.6.5', folder)
const read = (path: string) => readFileSync(join(home, 'pki', path), 'utf8')
const intermediate = 'intermediate-ca-quickstart'
const issuer = {
  certificate: new X509Certificate(read(`${intermediate}/certs/${intermediate}.cert`)),
  key: createPrivateKey(read(`${intermediate}/keys/${intermediate}.key`)),
}

describe('an authority that another program made', () => {
  const server = issueServerCertificate(issuer, generateServerKey(), ['localhost'], NETWORK_TIME)

  it('is named by the key identifier that it states itself', () => {
    expect(server.checkIssued(issuer.certificate)).toBe(true)
    expect(isServerCertificateDue(server, issuer.certificate, ['localhost'], NETWORK_TIME)).toBe(false)
  })

  it.skipIf(lacks('openssl', hasOpenssl))('is found by OpenSSL with the bundle that clients have stored', () => {
    const [bundle, leaf] = [join(folder, 'bundle.pem'), join(folder, 'leaf.pem')]
    writeFileSync(bundle, readFileSync(join(home, 'clients/cas.pem')))
    writeFileSync(leaf, toCertificatePem(server))
    const time = String(Math.floor(NETWORK_TIME / 1000) + 60)
    expect(execFileSync('openssl', ['verify', '-attime', time, '-CAfile', bundle, leaf]).toString()).toContain('OK')
  })

  it('is not reported as ending at the beginning of its life, however short that is', () => {
    const root = new X509Certificate(read('root-ca/certs/root-ca.cert'))
    expect(isRootDue(root, NETWORK_TIME)).toBe(false)
    expect(isRootDue(root, readNotAfter(root) - 3 * 365 * 24 * 3600 * 1000)).toBe(true)
  })
})

it('trusts every authority, but counts on clients for those of listeners for them', () => {
  const network = unpackNetwork('1.6.5-three-roots', join(folder, 'three-roots'))
  const edgeRoot = new X509Certificate(readFileSync(join(network.home, 'pki/edge-root/certs/edge-root.cert')))
  const isEdgeRoot = ({ fingerprint256 }: X509Certificate) => fingerprint256 === edgeRoot.fingerprint256
  const readAuthority = (apis: RegExp) => {
    writeFileSync(network.config, readFileSync(network.config, 'utf8').replace(apis, ''))
    const configuration = SourceConfiguration.read({ path: network.config, env: {} })
    const { clientBundle, former } = readSourceAuthority(configuration, NETWORK_TIME, undefined)
    return { told: clientBundle.some(isEdgeRoot), trusted: former.some(isEdgeRoot) }
  }
  expect(readAuthority(/^$/)).toEqual({ told: true, trusted: true })
  expect(readAuthority(/^ *- binding: edge-\w+$/gm)).toEqual({ told: false, trusted: true })
})

it("accepts the codes of a secret of 10 bytes, which is what OpenZiti's controller makes", () => {
  // Computed by another implementation of RFC 6238.
  expect(findStep('GEZDGNBVGY3TQOJQ', '263420', 59_000, 1)).toBe(1)
})

describe('a password hash of a lower cost', () => {
  const hash = '$argon2id$v=19$m=3072,t=1,p=4$5v+cdDIpBIL/2Q$87spvMsnIztGRaOmIleLqJvabKH5OBiyb9Wvc1ysRPQ'
  const hasher = new PasswordHasher(10)
  const context = { caller: ANONYMOUS, origin: { requestId: 'r', address: undefined } }

  it('is verified, and has to be replaced', async () => {
    expect(await hasher.verify(hash, 'Secr3t!pass', context)).toBe(true)
    expect(await hasher.verify(hash, 'another', context)).toBe(false)
    expect(hasher.needsRehash(hash)).toBe(true)
  })
})
