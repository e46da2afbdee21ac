// The controller's own certificate authority: a root, an intermediate that issues, and the server certificate.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import {
  type AlternativeNames,
  computeFingerprint256,
  type EncodedCertificate,
  encodeCertificate,
  issueCertificate,
  readNotAfter,
  readNotBefore,
  toCertificatePem,
} from './certificates.ts'
import { writePrivateFile } from './files.ts'
import { encodeDistinguishedName } from './names.ts'
import type { SigningRequest } from './requests.ts'
import { deriveTrustDomain } from './spiffe.ts'

const DAY = 24 * 60 * 60 * 1000
const YEAR = 365 * DAY
// A new certificate must be valid for a client whose clock is a little behind.
const BACKDATE_MS = 60 * 1000

const LIFETIME_MS = { root: 30 * YEAR, intermediate: 15 * YEAR, server: YEAR, client: YEAR } as const
const ORGANIZATION = 'Edge Controller'

/** What a client certificate contains beside the subject and the key of its request. */
export interface ClientCertificateOptions {
  /** How long it is valid, in milliseconds; one year by default. */
  readonly lifetimeMs?: number
  readonly names?: AlternativeNames
}

/** A certificate with its private key. */
export interface KeyedCertificate {
  readonly certificate: X509Certificate
  readonly key: KeyObject
}

const getPaths = (directory: string) => ({
  trustDomain: join(directory, 'trust-domain'),
  rootCertificate: join(directory, 'root.crt'),
  rootKey: join(directory, 'root.key'),
  intermediateCertificate: join(directory, 'intermediate.crt'),
  intermediateKey: join(directory, 'intermediate.key'),
  serverCertificate: join(directory, 'server.crt'),
  serverKey: join(directory, 'server.key'),
})

export class Authority {
  readonly root: X509Certificate
  readonly intermediate: KeyedCertificate
  readonly server: KeyedCertificate
  /** The trust domain of SPIFFE ids: derived from the first root, and never changed, because issued certificates contain it. */
  readonly trustDomain: string

  private constructor(
    trustDomain: string,
    root: X509Certificate,
    intermediate: KeyedCertificate,
    server: KeyedCertificate,
  ) {
    this.trustDomain = trustDomain
    this.root = root
    this.intermediate = intermediate
    this.server = server
  }

  /** Creates all keys and certificates of a new controller with these `hosts`. Returns the paths of the files. */
  static make(directory: string, hosts: readonly string[], now: Instant): string[] {
    const files = getPaths(directory)
    const root = makeSelfSigned(now)
    const intermediate = issueKeyed(root, 'authority', 'Edge Controller Intermediate', now, LIFETIME_MS.intermediate)
    const server = issueKeyed(intermediate, 'server', hosts[0] ?? 'localhost', now, LIFETIME_MS.server, hosts)
    const contents: readonly (readonly [string, string])[] = [
      [files.trustDomain, `${deriveTrustDomain(root.certificate)}\n`],
      [files.rootKey, toKeyPem(root.key)],
      [files.rootCertificate, toCertificatePem(root.certificate)],
      [files.intermediateKey, toKeyPem(intermediate.key)],
      [files.intermediateCertificate, toCertificatePem(intermediate.certificate)],
      [files.serverKey, toKeyPem(server.key)],
      [files.serverCertificate, toCertificatePem(server.certificate)],
    ]
    for (const [path, content] of contents) writePrivateFile(path, content)
    return contents.map(([path]) => path)
  }

  static exists(directory: string): boolean {
    return existsSync(getPaths(directory).serverCertificate)
  }

  /** Loads the files of `make`. Renews the server certificate, with the same key, if it expires soon or lacks a host. */
  static load(directory: string, hosts: readonly string[], now: Instant): Authority {
    const files = getPaths(directory)
    const trustDomain = parseFile(files.trustDomain, (content) => content.toString().trim())
    const root = readCertificate(files.rootCertificate)
    const intermediate = readKeyed(files.intermediateCertificate, files.intermediateKey)
    const server = readKeyed(files.serverCertificate, files.serverKey)
    if (isServerCertificateValid(server.certificate, hosts, now))
      return new Authority(trustDomain, root, intermediate, server)
    const renewed = { key: server.key, certificate: issueServerCertificate(intermediate, server.key, hosts, now) }
    writePrivateFile(files.serverCertificate, toCertificatePem(renewed.certificate))
    return new Authority(trustDomain, root, intermediate, renewed)
  }

  /** The chain of the TLS server: its certificate and the intermediate, without the root. */
  get serverChainPem(): string {
    return toCertificatePem(this.server.certificate) + toCertificatePem(this.intermediate.certificate)
  }

  get serverKeyPem(): string {
    return toKeyPem(this.server.key)
  }

  /** All authorities of this controller, which clients must trust. */
  get bundle(): readonly X509Certificate[] {
    return [this.root, this.intermediate.certificate]
  }

  /** The PEM of all authorities, which clients store. */
  get bundlePem(): string {
    return this.bundle.map(toCertificatePem).join('')
  }

  /** SHA-256 of the root, lower-case hex: a person compares it, and a profile pins it. */
  get rootFingerprint(): string {
    return computeFingerprint256(this.root)
  }

  /** Issues a client certificate. Alternative names of the request are ignored. */
  issueClient(
    request: SigningRequest,
    now: Instant,
    { lifetimeMs = LIFETIME_MS.client, names = {} }: ClientCertificateOptions = {},
  ): EncodedCertificate {
    return encodeCertificate(
      {
        purpose: 'client',
        subject: request.subject,
        publicKeyInfo: request.publicKeyInfo,
        notBefore: now - BACKDATE_MS,
        notAfter: now + lifetimeMs,
        names,
      },
      this.intermediate,
    )
  }

  /** The PEM of a client certificate and the intermediate. */
  clientChainPem(certificate: EncodedCertificate): string {
    return toCertificatePem(certificate) + toCertificatePem(this.intermediate.certificate)
  }
}

function makeSelfSigned(now: Instant): KeyedCertificate {
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

function issueKeyed(
  issuer: KeyedCertificate,
  purpose: 'authority' | 'server',
  commonName: string,
  now: Instant,
  lifetime: number,
  hosts?: readonly string[],
): KeyedCertificate {
  if (purpose === 'server') {
    const { privateKey: key } = generateServerKey()
    return { key, certificate: issueServerCertificate(issuer, key, hosts ?? [], now) }
  }
  const { privateKey: key, publicKey } = generateKey()
  const certificate = issueCertificate(
    {
      purpose,
      subject: encodeDistinguishedName(ORGANIZATION, `${commonName} ${newId()}`),
      publicKeyInfo: toSpki(publicKey),
      notBefore: now - BACKDATE_MS,
      notAfter: now + lifetime,
      pathLength: 0,
    },
    issuer,
  )
  return { certificate, key }
}

function issueServerCertificate(
  issuer: KeyedCertificate,
  key: KeyObject,
  hosts: readonly string[],
  now: Instant,
): X509Certificate {
  return issueCertificate(
    {
      purpose: 'server',
      subject: encodeDistinguishedName(ORGANIZATION, hosts[0] ?? 'localhost'),
      publicKeyInfo: toSpki(createPublicKey(key)),
      notBefore: now - BACKDATE_MS,
      notAfter: now + LIFETIME_MS.server,
      names: { hosts },
    },
    issuer,
  )
}

/** Whether the certificate names all hosts and is not in the last third of its validity. */
function isServerCertificateValid(certificate: X509Certificate, hosts: readonly string[], now: Instant): boolean {
  const lifetime = readNotAfter(certificate) - readNotBefore(certificate)
  // If it is not valid yet, the clock is behind: a new certificate would expire long before it should.
  const isFresh = readNotAfter(certificate) - now > lifetime / 3
  return isFresh && hosts.every((host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)))
}

function generateKey() {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}

/**
 * RSA, although it signs more slowly: this key signs enrollment JWTs, and the OpenZiti C SDK, if built with mbed TLS, accepts
 * elliptic-curve signatures only in a form that JWTs (RFC 7518 §3.4) do not use.
 */
function generateServerKey() {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
}

function toSpki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' })
}

function toKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string
}

function readKeyed(certificatePath: string, keyPath: string): KeyedCertificate {
  return { certificate: readCertificate(certificatePath), key: parseFile(keyPath, createPrivateKey) }
}

function readCertificate(path: string): X509Certificate {
  return parseFile(path, (content) => new X509Certificate(content))
}

/** @throws an error with the path, which those of OpenSSL lack, if the file cannot be read or parsed */
function parseFile<T>(path: string, parse: (content: Buffer) => T): T {
  try {
    return parse(readFileSync(path))
  } catch (error) {
    throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}
