// Authorities of operators, and client certificates that they issue, made by another library than the one under test.
import { createPrivateKey, randomBytes, sign, webcrypto } from 'node:crypto'
import { expect } from 'vitest'
import { DerReader, der } from '../../src/pki/der.ts'
import { toPem } from '../../src/pki/pem.ts'
import { type KeyKind, keyAlgorithms, x509 } from './certificates.ts'
import type { People } from './people.ts'

const DAY = 24 * 60 * 60_000

/** The claim of an authority whose certificates name the external id of an identity as their common name. */
export const COMMON_NAME_CLAIM = {
  location: 'COMMON_NAME',
  matcher: 'ALL',
  matcherCriteria: '',
  parser: 'NONE',
  parserCriteria: '',
  index: 0,
} as const

/** A certificate with its private key. */
export interface TestCertificate {
  readonly certificate: x509.X509Certificate
  readonly keys: webcrypto.CryptoKeyPair
  readonly kind: KeyKind
  readonly pem: string
  readonly keyPem: string
}

export interface CertificateOptions {
  readonly kind?: KeyKind
  readonly notBefore?: Date
  readonly notAfter?: Date
  readonly isAuthority?: boolean
  readonly uris?: readonly string[]
  readonly emails?: readonly string[]
  readonly hosts?: readonly string[]
  /** Object identifiers; without them the certificate may serve any purpose. */
  readonly purposes?: readonly string[]
  readonly keyUsage?: x509.KeyUsageFlags
  /** The keys of an earlier certificate. */
  readonly keys?: webcrypto.CryptoKeyPair
}

/** Issues a certificate: signed by `issuer`, or by itself. @param name the whole subject, as `CN=…, O=…` */
export async function issue(
  name: string,
  issuer?: TestCertificate,
  options: CertificateOptions = {},
): Promise<TestCertificate> {
  const { kind = 'P-256', isAuthority = false, uris = [], emails = [], hosts = [], purposes = [] } = options
  const { notBefore = new Date(Date.now() - DAY), notAfter = new Date(Date.now() + 365 * DAY) } = options
  const keys = options.keys ?? (await generateKeys(kind))
  const names = [
    ...uris.map((value) => ({ type: 'url' as const, value })),
    ...emails.map((value) => ({ type: 'email' as const, value })),
    ...hosts.map((value) => ({ type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const), value })),
  ]
  const signer = keyAlgorithms[issuer?.kind ?? kind]
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomBytes(8).toString('hex'),
    subject: name,
    issuer: issuer?.certificate.subject ?? name,
    notBefore,
    notAfter,
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: { ...(signer.algorithm as object), ...(signer.hash ? { hash: signer.hash } : {}) },
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      // RFC 5280 4.2.1.2 requires it of authorities.
      ...(isAuthority ? [await x509.SubjectKeyIdentifierExtension.create(keys.publicKey)] : []),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ...(options.keyUsage === undefined ? [] : [new x509.KeyUsagesExtension(options.keyUsage, true)]),
      ...(purposes.length > 0 ? [new x509.ExtendedKeyUsageExtension([...purposes])] : []),
    ],
  } as never)
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  const pem = `${certificate.toString('pem')}\n`
  return { certificate, keys, kind, pem, keyPem: key.export({ type: 'pkcs8', format: 'pem' }) as string }
}

/** A certificate as PEM whose key is a point that is not on its curve, and which the issuer has signed with that. */
export function withUndecodableKey({ certificate }: TestCertificate, issuer: TestCertificate): string {
  const members = new DerReader(Buffer.from(certificate.rawData)).sequence()
  const [body, algorithm] = [Buffer.from(members.next().bytes), members.next().bytes]
  const key = Buffer.from(certificate.publicKey.rawData)
  const lastOfPoint = body.indexOf(key) + key.length - 1
  body[lastOfPoint] = (body[lastOfPoint] as number) ^ 1
  return toPem('CERTIFICATE', der.sequence(body, algorithm, der.bitString(sign('sha256', body, issuer.keyPem))))
}

async function generateKeys(kind: KeyKind): Promise<webcrypto.CryptoKeyPair> {
  const { algorithm } = keyAlgorithms[kind]
  return (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}

/** A self-signed authority. */
export function makeAuthority(name = 'CN=Factory CA, O=test', options: CertificateOptions = {}) {
  return issue(name, undefined, { ...options, isAuthority: true })
}

/** An authority that the controller under test knows, and has verified unless that was not asked for. */
export interface RegisteredTestAuthority extends TestCertificate {
  readonly id: string
  readonly name: string
}

let registered = 0

/** Registers a new authority, and verifies it by a certificate of its own. */
export async function registerAuthority(
  people: People,
  values: Record<string, unknown> & { readonly isVerified?: boolean; readonly authority?: TestCertificate } = {},
): Promise<RegisteredTestAuthority> {
  const name = `authority ${++registered}`
  const { authority = await makeAuthority(`CN=${name}, O=test`), isVerified = true, ...changes } = values
  const flags = { isAuthEnabled: true, isOttCaEnrollmentEnabled: true, isAutoCaEnrollmentEnabled: true }
  const body = { name, certPem: authority.pem, identityRoles: [], ...flags, ...changes }
  const { id } = await people.manage('POST', '/cas', body)
  const registeredAuthority = { ...authority, id, name: String(body.name) }
  if (isVerified) await verifyAuthority(people, registeredAuthority)
  return registeredAuthority
}

/** Verifies a registered authority by a certificate of its own. */
export async function verifyAuthority(people: People, authority: RegisteredTestAuthority): Promise<void> {
  const { verificationToken } = await people.manage('GET', `/cas/${authority.id}`)
  const proof = await issue(`CN=${verificationToken}`, authority)
  const verification = await people.askText('POST', `/cas/${authority.id}/verify`, proof.pem)
  expect(verification.status).toBe(200)
}
