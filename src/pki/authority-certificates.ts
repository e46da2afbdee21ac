// Issues the controller's own certificates: roots, intermediates and the server certificate.
import { createPublicKey, generateKeyPairSync, type KeyObject, type X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import { newId } from '../foundation/ids.ts'
import type { KeyedCertificate } from './authority-files.ts'
import {
  type EncodedCertificate,
  encodeCertificate,
  isHostOf,
  issueCertificate,
  readNotAfter,
  readNotBefore,
  readSubject,
} from './certificates.ts'
import { encodeDistinguishedName } from './names.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const YEAR_MS = 365 * DAY_MS
// A new certificate must be valid for a client whose clock is a little behind.
export const BACKDATE_MS = 60 * 1000

export const LIFETIME_MS = { root: 30 * YEAR_MS, intermediate: 15 * YEAR_MS, server: YEAR_MS, client: YEAR_MS } as const
const ORGANIZATION = 'Edge Controller'

export function createRoot(now: Instant): KeyedCertificate {
  const { privateKey: key, publicKey } = generateKey()
  const certificate = issueCertificate(
    {
      purpose: 'authority',
      // The roots of two controllers need different names, because clients that trust both find issuers by name.
      subject: encodeDistinguishedName(ORGANIZATION, `Edge Controller Root ${newId()}`),
      publicKeyInfo: toSpki(publicKey),
      notBefore: now - BACKDATE_MS,
      notAfter: now + LIFETIME_MS.root,
    },
    { key },
  )
  return { certificate, key }
}

export function createIntermediate(root: KeyedCertificate, now: Instant): KeyedCertificate {
  const { privateKey: key, publicKey } = generateKey()
  const certificate = issueCertificate(
    {
      purpose: 'authority',
      subject: encodeDistinguishedName(ORGANIZATION, `Edge Controller Intermediate ${newId()}`),
      publicKeyInfo: toSpki(publicKey),
      notBefore: now - BACKDATE_MS,
      notAfter: limitEnd(root.certificate, now + LIFETIME_MS.intermediate),
      pathLength: 0,
    },
    root,
  )
  return { certificate, key }
}

/**
 * Certifies the key of a new root by the root that it replaces: clients that know only the previous root then trust what the
 * new one issues.
 */
export function crossSignRoot(root: X509Certificate, previousRoot: KeyedCertificate): X509Certificate {
  return issueCertificate(
    {
      purpose: 'authority',
      subject: readSubject(root),
      publicKeyInfo: toSpki(root.publicKey),
      notBefore: readNotBefore(root),
      notAfter: limitEnd(previousRoot.certificate, readNotAfter(root)),
    },
    previousRoot,
  )
}

/**
 * RSA, although it signs more slowly: this key signs enrollment JWTs, and the OpenZiti C SDK, if built with mbed TLS, accepts
 * elliptic-curve signatures only in a form that JWTs (RFC 7518 §3.4) do not use.
 */
export function generateServerKey(): KeyObject {
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}

/** @param previous the certificate that this one replaces */
export function issueServerCertificate(
  issuer: KeyedCertificate,
  key: KeyObject,
  hosts: readonly string[],
  now: Instant,
  previous?: X509Certificate,
): X509Certificate {
  // It begins no later than the certificate that it replaces began: if the clock was set forward by mistake, the certificate
  // is still valid after the correction.
  const begin = previous ? Math.min(Math.max(readNotBefore(previous), now - LIFETIME_MS.server), now) : now
  return issueCertificate(
    {
      purpose: 'server',
      subject: encodeDistinguishedName(ORGANIZATION, hosts[0] ?? 'localhost'),
      publicKeyInfo: toSpki(createPublicKey(key)),
      notBefore: begin - BACKDATE_MS,
      notAfter: limitEnd(issuer.certificate, now + LIFETIME_MS.server),
      names: { hosts },
    },
    issuer,
  )
}

/** Issues the certificate of a key that signs tokens. Routers do not judge its dates: tokens end by themselves. */
export function encodeTokenSigner(
  issuer: KeyedCertificate,
  publicKey: KeyObject,
  now: Instant,
  notAfter: Instant,
): EncodedCertificate {
  return encodeCertificate(
    {
      purpose: 'tokens',
      subject: encodeDistinguishedName(ORGANIZATION, 'tokens'),
      publicKeyInfo: toSpki(publicKey),
      notBefore: now - BACKDATE_MS,
      notAfter: limitEnd(issuer.certificate, notAfter),
    },
    issuer,
  )
}

/** Whether the server certificate must be replaced: it expires soon, lacks a host, or another authority issued it. */
export function isServerCertificateDue(
  server: X509Certificate,
  intermediate: X509Certificate,
  hosts: readonly string[],
  now: Instant,
): boolean {
  if (!server.checkIssued(intermediate) || !server.verify(intermediate.publicKey)) return true
  if (!hosts.every((host) => isHostOf(server, host))) return true
  if (readNotBefore(server) > now) return wasClockAhead(intermediate, now)
  // Only a clock that was ahead issues a certificate that ends so late.
  if (readNotAfter(server) > now + LIFETIME_MS.server + DAY_MS) return true
  return isEnding(server, intermediate, LIFETIME_MS.server, now)
}

/**
 * Whether the intermediate must be replaced: it is in the last third of its life, or an earlier root issued it.
 * @param former authorities, over which that of an adopted network may lead to its root
 */
export function isIntermediateDue(
  intermediate: X509Certificate,
  root: X509Certificate,
  former: readonly X509Certificate[],
  now: Instant,
): boolean {
  if (!leadsTo(intermediate, root, former)) return true
  if (readNotBefore(intermediate) > now) return wasClockAhead(root, now)
  return isEnding(intermediate, root, LIFETIME_MS.intermediate, now)
}

/** Whether the root issued a certificate, or issued an authority that did, and so on. */
function leadsTo(certificate: X509Certificate, root: X509Certificate, between: readonly X509Certificate[]): boolean {
  const isIssuedBy = (issuer: X509Certificate) =>
    certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  if (isIssuedBy(root)) return true
  const issuer = between.find((candidate) => candidate !== certificate && isIssuedBy(candidate))
  return issuer !== undefined && leadsTo(issuer, root, without(between, issuer))
}

function without<T>(items: readonly T[], item: T): T[] {
  return items.filter((each) => each !== item)
}

/**
 * Whether a certificate is not valid yet because the clock was ahead when it was issued: its issuer is valid, so another one is
 * required. Otherwise the clock is behind now, and a new one would expire long before it should.
 */
function wasClockAhead(issuer: X509Certificate, now: Instant): boolean {
  return readNotBefore(issuer) <= now
}

/** Whether an operator should replace the root: it is in the last third of its life. */
export function isRootDue(root: X509Certificate, now: Instant): boolean {
  // By its own life: that of an adopted root is shorter than that of ours.
  return readNotAfter(root) - now <= (readNotAfter(root) - readNotBefore(root)) / 3
}

/** Whether a certificate is in the last third of its life, and a new one of the same issuer would end noticeably later. */
function isEnding(certificate: X509Certificate, issuer: X509Certificate, lifetimeMs: number, now: Instant): boolean {
  const end = readNotAfter(certificate)
  return end - now <= lifetimeMs / 3 && limitEnd(issuer, now + lifetimeMs) - end > lifetimeMs / 12
}

/** No certificate outlives its issuer. */
export function limitEnd(issuer: X509Certificate, end: Instant): Instant {
  return Math.min(end, readNotAfter(issuer))
}

function generateKey() {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}

function toSpki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' })
}
