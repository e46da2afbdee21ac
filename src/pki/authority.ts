// The controller's own certificate authority: a root, an intermediate that signs, and the certificate it serves with.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import {
  certificatePem,
  type EncodedCertificate,
  encodeCertificate,
  fingerprint256,
  issueCertificate,
  notAfter,
  notBefore,
} from './certificates.ts'
import { writePrivateFile } from './files.ts'
import { distinguishedName } from './names.ts'
import type { SigningRequest } from './requests.ts'

const DAY = 24 * 60 * 60 * 1000
const YEAR = 365 * DAY
// A client whose clock is a little behind must still find a fresh certificate valid.
const BACKDATED = 60 * 1000

const LIFETIME = { root: 30 * YEAR, intermediate: 15 * YEAR, server: YEAR, client: YEAR } as const
const ORGANISATION = 'Edge Controller'

/** A certificate with its private key. */
export interface KeyedCertificate {
  readonly certificate: X509Certificate
  readonly key: KeyObject
}

const paths = (directory: string) => ({
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

  private constructor(root: X509Certificate, intermediate: KeyedCertificate, server: KeyedCertificate) {
    this.root = root
    this.intermediate = intermediate
    this.server = server
  }

  /** Makes all keys and certificates of a new controller that is reached under `hosts`. Returns the files it wrote. */
  static make(directory: string, hosts: readonly string[], now: Instant): string[] {
    const files = paths(directory)
    const root = selfSigned(now)
    const intermediate = signed(root, 'authority', 'Edge Controller Intermediate', now, LIFETIME.intermediate)
    const server = signed(intermediate, 'server', hosts[0] ?? 'localhost', now, LIFETIME.server, hosts)
    const written: readonly (readonly [string, string])[] = [
      [files.rootKey, keyPem(root.key)],
      [files.rootCertificate, certificatePem(root.certificate)],
      [files.intermediateKey, keyPem(intermediate.key)],
      [files.intermediateCertificate, certificatePem(intermediate.certificate)],
      [files.serverKey, keyPem(server.key)],
      [files.serverCertificate, certificatePem(server.certificate)],
    ]
    for (const [path, content] of written) writePrivateFile(path, content)
    return written.map(([path]) => path)
  }

  static exists(directory: string): boolean {
    return existsSync(paths(directory).serverCertificate)
  }

  /** Loads what `make` wrote. The server's certificate is issued anew, with its own key, where it is due or lacks a host. */
  static load(directory: string, hosts: readonly string[], now: Instant): Authority {
    const files = paths(directory)
    const root = readCertificate(files.rootCertificate)
    const intermediate = readKeyed(files.intermediateCertificate, files.intermediateKey)
    const server = readKeyed(files.serverCertificate, files.serverKey)
    if (isFit(server.certificate, hosts, now)) return new Authority(root, intermediate, server)
    const renewed = { key: server.key, certificate: serverCertificate(intermediate, server.key, hosts, now) }
    writePrivateFile(files.serverCertificate, certificatePem(renewed.certificate))
    return new Authority(root, intermediate, renewed)
  }

  /** What a TLS server presents: its certificate and the intermediate, without the root. */
  get serverChainPem(): string {
    return certificatePem(this.server.certificate) + certificatePem(this.intermediate.certificate)
  }

  get serverKeyPem(): string {
    return keyPem(this.server.key)
  }

  /** All authorities of this controller, for clients to trust. */
  get bundle(): readonly X509Certificate[] {
    return [this.root, this.intermediate.certificate]
  }

  /** SHA-256 of the root, lower-case hex: what a person compares, and a profile pins. */
  get rootFingerprint(): string {
    return fingerprint256(this.root)
  }

  /** Issues a client certificate for one year; what the request says of alternative names is dropped. */
  issueClient(request: SigningRequest, now: Instant): EncodedCertificate {
    return encodeCertificate(
      {
        purpose: 'client',
        subject: request.subject,
        publicKeyInfo: request.publicKeyInfo,
        notBefore: now - BACKDATED,
        notAfter: now + LIFETIME.client,
      },
      this.intermediate,
    )
  }

  /** A client's certificate with what stands between it and the root, as PEM. */
  clientChainPem(certificate: EncodedCertificate): string {
    return certificatePem(certificate) + certificatePem(this.intermediate.certificate)
  }
}

function selfSigned(now: Instant): KeyedCertificate {
  const { privateKey: key, publicKey } = newKey()
  const certificate = issueCertificate(
    {
      purpose: 'authority',
      // Roots of two controllers must not share a name: clients that trust both find issuers by it.
      subject: distinguishedName(ORGANISATION, `Edge Controller Root ${newId()}`),
      publicKeyInfo: spki(publicKey),
      notBefore: now - BACKDATED,
      notAfter: now + LIFETIME.root,
    },
    { key },
  )
  return { certificate, key }
}

function signed(
  issuer: KeyedCertificate,
  purpose: 'authority' | 'server',
  commonName: string,
  now: Instant,
  lifetime: number,
  hosts?: readonly string[],
): KeyedCertificate {
  if (purpose === 'server') {
    const { privateKey: key } = newServerKey()
    return { key, certificate: serverCertificate(issuer, key, hosts ?? [], now) }
  }
  const { privateKey: key, publicKey } = newKey()
  const certificate = issueCertificate(
    {
      purpose,
      subject: distinguishedName(ORGANISATION, `${commonName} ${newId()}`),
      publicKeyInfo: spki(publicKey),
      notBefore: now - BACKDATED,
      notAfter: now + lifetime,
      pathLength: 0,
    },
    issuer,
  )
  return { certificate, key }
}

function serverCertificate(
  issuer: KeyedCertificate,
  key: KeyObject,
  hosts: readonly string[],
  now: Instant,
): X509Certificate {
  return issueCertificate(
    {
      purpose: 'server',
      subject: distinguishedName(ORGANISATION, hosts[0] ?? 'localhost'),
      publicKeyInfo: spki(createPublicKey(key)),
      notBefore: now - BACKDATED,
      notAfter: now + LIFETIME.server,
      names: { hosts },
    },
    issuer,
  )
}

/** Names all hosts, and is not in the last third of its life. */
function isFit(certificate: X509Certificate, hosts: readonly string[], now: Instant): boolean {
  const lifetime = notAfter(certificate) - notBefore(certificate)
  // One that seems to begin later says that the clock is behind: another one would end long before it should.
  const isFresh = notAfter(certificate) - now > lifetime / 3
  return isFresh && hosts.every((host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)))
}

function newKey() {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}

/**
 * RSA, although it signs more slowly: enrollment JWTs are signed with this key, and the C SDK that devices use, where it is
 * built on mbed TLS, takes elliptic-curve signatures only in a form that JWTs (RFC 7518 §3.4) do not have.
 */
function newServerKey() {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' })
}

function keyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string
}

function readKeyed(certificatePath: string, keyPath: string): KeyedCertificate {
  return { certificate: readCertificate(certificatePath), key: parseFile(keyPath, createPrivateKey) }
}

function readCertificate(path: string): X509Certificate {
  return parseFile(path, (content) => new X509Certificate(content))
}

/** @throws if the file cannot be read or does not parse, with its path: OpenSSL does not know it */
function parseFile<T>(path: string, parse: (content: Buffer) => T): T {
  try {
    return parse(readFileSync(path))
  } catch (error) {
    throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}
