// Issues X.509 certificates (RFC 5280), and reads their dates, fingerprints and names.
import { createHash, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Instant } from '../foundation/clock.ts'
import { toSigningAlgorithm } from './algorithms.ts'
import { DerReader, der } from './der.ts'
import type { EncodedCertificate } from './encoded-certificate.ts'
import { EXTENSION_OIDS, readExtensions } from './extensions.ts'
import { toPem } from './pem.ts'

export type { EncodedCertificate } from './encoded-certificate.ts'

export type CertificatePurpose = 'authority' | 'client' | 'server' | 'tokens'

/** Subject alternative names. */
export interface AlternativeNames {
  /** Host names and IP addresses. */
  readonly hosts?: readonly string[]
  readonly uris?: readonly string[]
  /** DER of the names of another certificate, which takes the place of all others. */
  readonly encoded?: Buffer
}

export interface CertificateRequest {
  readonly purpose: CertificatePurpose
  /** DER of the subject name. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Buffer
  readonly notBefore: Instant
  readonly notAfter: Instant
  readonly names?: AlternativeNames
  /** For authorities: how many authorities may follow below. */
  readonly pathLength?: number
}

/** The signer: an authority's certificate and key, or only a key for a self-signed root. */
export interface Issuer {
  readonly key: KeyObject
  readonly certificate?: X509Certificate
}

// 128 random bits: RFC 5280 allows 20 octets and requires only that serial numbers are unique.
const SERIAL_BYTES = 16

// RFC 5280 §4.2.1.3, first bit first: digitalSignature, …, keyCertSign (bit 5), cRLSign (bit 6).
const KEY_USAGE = {
  authority: der.bitString(Buffer.from([0b00000110]), 1),
  // digitalSignature, keyEncipherment, dataEncipherment
  client: der.bitString(Buffer.from([0b10110000]), 4),
  server: der.bitString(Buffer.from([0b10110000]), 4),
  // digitalSignature
  tokens: der.bitString(Buffer.from([0b10000000]), 7),
} as const

// The last one is that of signatures on documents (RFC 9336): a certificate that signs tokens identifies no end of a connection.
const EXTENDED_KEY_USAGE = {
  client: '1.3.6.1.5.5.7.3.2',
  server: '1.3.6.1.5.5.7.3.1',
  tokens: '1.3.6.1.5.5.7.3.36',
} as const

/** Issues a certificate and parses it. */
export function issueCertificate(request: CertificateRequest, issuer: Issuer): X509Certificate {
  return new X509Certificate(encodeCertificate(request, issuer).raw)
}

/** Issues a certificate without parsing it. */
export function encodeCertificate(request: CertificateRequest, issuer: Issuer): EncodedCertificate {
  const { digest, identifier } = toSigningAlgorithm(issuer.key)
  const issuerName = issuer.certificate ? getIssuerFields(issuer.certificate).name : request.subject
  const body = der.sequence(
    der.explicit(0, der.integer(2)), // version 3
    der.unsigned(createSerialNumber()),
    identifier,
    issuerName,
    der.sequence(der.time(request.notBefore), der.time(request.notAfter)),
    request.subject,
    request.publicKeyInfo,
    der.explicit(3, der.sequence(...buildExtensions(request, issuer))),
  )
  const signature = sign(digest, body, issuer.key)
  return { raw: der.sequence(body, identifier, der.bitString(signature)) }
}

function createSerialNumber(): Buffer {
  const bytes = randomBytes(SERIAL_BYTES)
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40
  return bytes
}

function buildExtensions(request: CertificateRequest, issuer: Issuer): Buffer[] {
  const { purpose, names = {} } = request
  const ownKey = keyIdentifier(request.publicKeyInfo)
  const issuerKey = issuer.certificate ? getIssuerFields(issuer.certificate).keyIdentifier : ownKey
  const encoded = [
    ...(purpose === 'authority' ? buildAuthorityExtensions(request) : ENTITY_EXTENSIONS[purpose]),
    encodeExtension('2.5.29.14', der.octetString(ownKey)),
    encodeExtension('2.5.29.35', der.sequence(der.implicit(0, issuerKey))),
  ]
  const general = names.encoded ?? encodeGeneralNames(names)
  if (general) encoded.push(encodeExtension('2.5.29.17', general))
  return encoded
}

function encodeExtension(oid: string, value: Buffer, isCritical = false): Buffer {
  return der.sequence(der.oid(oid), ...(isCritical ? [der.boolean(true)] : []), der.octetString(value))
}

function buildAuthorityExtensions({ pathLength }: CertificateRequest): Buffer[] {
  const constraints = der.sequence(der.boolean(true), ...(pathLength === undefined ? [] : [der.integer(pathLength)]))
  return [encodeExtension('2.5.29.19', constraints, true), encodeExtension('2.5.29.15', KEY_USAGE.authority, true)]
}

/** The extensions that all certificates of a purpose share: encoded once, because devices enroll by the thousand. */
const ENTITY_EXTENSIONS = {
  client: buildEntityExtensions('client'),
  server: buildEntityExtensions('server'),
  tokens: buildEntityExtensions('tokens'),
} as const

function buildEntityExtensions(purpose: Exclude<CertificatePurpose, 'authority'>): Buffer[] {
  return [
    encodeExtension('2.5.29.19', der.sequence(), true),
    encodeExtension('2.5.29.15', KEY_USAGE[purpose], true),
    encodeExtension('2.5.29.37', der.sequence(der.oid(EXTENDED_KEY_USAGE[purpose]))),
  ]
}

// RFC 5280 §4.2.1.6: [2] dNSName, [6] uniformResourceIdentifier, [7] iPAddress.
function encodeGeneralNames({ hosts = [], uris = [] }: AlternativeNames): Buffer | undefined {
  if (hosts.length === 0 && uris.length === 0) return undefined
  return der.sequence(
    ...hosts.map((host) =>
      isIP(host) ? der.implicit(7, Buffer.from(ipaddr.parse(host).toByteArray())) : der.implicit(2, Buffer.from(host)),
    ),
    ...uris.map((uri) => der.implicit(6, Buffer.from(uri))),
  )
}

/** RFC 5280 §4.2.1.2, method 1: SHA-1 of the key's bits. */
function keyIdentifier(publicKeyInfo: Buffer): Buffer {
  const info = new DerReader(publicKeyInfo).sequence()
  info.next()
  return createHash('sha1').update(info.bits()).digest()
}

/** The identifier that an authority states for its key, which other programs compute in other ways (RFC 5280 §4.2.1.1). */
function readKeyIdentifier(certificate: EncodedCertificate): Buffer | undefined {
  const extension = readExtensions(certificate).get(EXTENSION_OIDS.subjectKeyIdentifier)
  return extension && new DerReader(extension.value).next().content
}

interface IssuerFields {
  /** DER of its subject. */
  readonly name: Buffer
  readonly keyIdentifier: Buffer
}

// A certificate never changes, and its parser is slow: the fields live as long as the parsed certificate does.
const issuerFieldsCache = new WeakMap<X509Certificate, IssuerFields>()

/** Returns the fields of an issuer that every issued certificate repeats. */
function getIssuerFields(certificate: X509Certificate): IssuerFields {
  let fields = issuerFieldsCache.get(certificate)
  if (!fields) {
    const { subject: name, publicKeyInfo } = readParts(certificate)
    fields = { name, keyIdentifier: readKeyIdentifier(certificate) ?? keyIdentifier(publicKeyInfo) }
    issuerFieldsCache.set(certificate, fields)
  }
  return fields
}

/** The contents of a certificate that the controller reads. */
export interface CertificateFacts {
  /** DER of its subject. */
  readonly subject: Buffer
  readonly notBefore: Instant
  readonly notAfter: Instant
}

/** Reads subject and dates from the DER, which is faster than parsing all of it. @throws DerError if it is not a certificate */
export function readFacts(certificate: EncodedCertificate): CertificateFacts {
  const body = new DerReader(certificate.raw).sequence().sequence()
  if (body.peekTag() === 0xa0) body.next() // version
  body.next() // serial number
  body.next() // signature algorithm
  body.next() // issuer
  const validity = body.sequence()
  const [notBefore, notAfter] = [validity.time(), validity.time()]
  return { subject: body.next().bytes, notBefore, notAfter }
}

/** Reads the DER of a certificate's subject and public key. */
function readParts(certificate: EncodedCertificate): { subject: Buffer; publicKeyInfo: Buffer } {
  const body = new DerReader(certificate.raw).sequence().sequence()
  if (body.peekTag() === 0xa0) body.next() // version
  body.next() // serial number
  body.next() // signature algorithm
  body.next() // issuer
  body.next() // validity
  return { subject: body.next().bytes, publicKeyInfo: body.next().bytes }
}

// ---- reading --------------------------------------------------------------------------------------------------------

export function toCertificatePem(certificate: EncodedCertificate): string {
  return toPem('CERTIFICATE', certificate.raw)
}

/** SHA-1 of the DER, lower-case hex: the fingerprint in the API. */
export function computeFingerprint(certificate: EncodedCertificate): string {
  return createHash('sha1').update(certificate.raw).digest('hex')
}

/** SHA-256 of the DER, lower-case hex: the key by which the controller finds certificates. */
export function computeFingerprint256(certificate: EncodedCertificate): string {
  return createHash('sha256').update(certificate.raw).digest('hex')
}

/** SHA-256 of the public key, lower-case hex. */
export function computePublicKeyPrint(certificate: EncodedCertificate): string {
  return createHash('sha256').update(readParts(certificate).publicKeyInfo).digest('hex')
}

/** Returns the public key of a certificate; undefined if it cannot be decoded, as a point that is not on its curve. */
export function readPublicKey(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey
  } catch {
    // OpenSSL parses a certificate without decoding its key.
    return undefined
  }
}

/** The DER of the subject name. */
export function readSubject(certificate: X509Certificate): Buffer {
  return getIssuerFields(certificate).name
}

export function readNotBefore(certificate: X509Certificate): Instant {
  return Date.parse(certificate.validFrom)
}

export function readNotAfter(certificate: X509Certificate): Instant {
  return Date.parse(certificate.validTo)
}

/** Returns the DER of the AlgorithmIdentifier of a certificate's signature. @throws DerError */
export function readSignatureAlgorithm(certificate: EncodedCertificate): Buffer {
  const members = new DerReader(certificate.raw).sequence()
  members.next() // body
  return members.next().bytes
}

/** The parts of a certificate that its signature concerns. */
interface SignedParts {
  /** DER of the name of its issuer. */
  readonly issuer: Buffer
  /** The DER that is signed. */
  readonly body: Buffer
  /** The OID of the algorithm. */
  readonly algorithm: string
  readonly signature: Buffer
}

/** @throws DerError if it is not a certificate */
export function readSignedParts(certificate: EncodedCertificate): SignedParts {
  const members = new DerReader(certificate.raw).sequence()
  const { bytes: body } = members.next()
  const algorithm = members.sequence().oid()
  const signature = members.bits()
  const fields = new DerReader(body).sequence()
  if (fields.peekTag() === 0xa0) fields.next() // version
  fields.next() // serial number
  fields.next() // signature algorithm
  return { issuer: fields.next().bytes, body, algorithm, signature }
}

// RFC 5280 §4.2.1.12: clientAuth and anyExtendedKeyUsage.
const CLIENT_PURPOSES: readonly string[] = [EXTENDED_KEY_USAGE.client, '2.5.29.37.0']

/** Whether the certificate may identify a TLS client. One that does not restrict its purposes may. */
export function allowsClientAuthentication({ keyUsage }: X509Certificate): boolean {
  return !keyUsage || keyUsage.some((purpose) => CLIENT_PURPOSES.includes(purpose))
}

export function isWithinDates(certificate: X509Certificate, now: Instant): boolean {
  return readNotBefore(certificate) <= now && now <= readNotAfter(certificate)
}

/** Whether a certificate is one of this host. */
export function isHostOf(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
}

/** The hosts that a certificate names. */
export function listNamedHosts({ subjectAltName }: X509Certificate): string[] {
  const names = [...(subjectAltName ?? '').matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, name = '']) => name)
  return [...new Set(names)]
}
