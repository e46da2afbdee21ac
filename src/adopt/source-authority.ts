// The certificates of OpenZiti's controller: which of its files becomes which part of this controller's authority.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import type { AdoptedAuthority, KeyedCertificate } from '../pki/authority-files.ts'
import { isWithinDates } from '../pki/certificates.ts'
import { findAuthorityObjection, isSelfSigned } from '../pki/chains.ts'
import { parsePemBlocks } from '../pki/pem.ts'
import type { SourceConfiguration } from './source-configuration.ts'
import { SourceError } from './source-error.ts'

/** The authority, and what else the certificates of a controller say. */
export interface SourceAuthority extends AdoptedAuthority {
  /** The name by which routers know the controller. */
  readonly controllerId: string
  /** The hosts for which the server certificate is valid. */
  readonly hosts: readonly string[]
  /** The authorities that clients stored when they enrolled. */
  readonly clientBundle: readonly X509Certificate[]
}

/** @param rootKeyPath where the key of the root is, if it is not beside its certificate */
export function readSourceAuthority(
  configuration: SourceConfiguration,
  now: number,
  rootKeyPath: string | undefined,
): SourceAuthority {
  const signing = configuration.part('edge').part('enrollment').part('signingCert')
  const identity = configuration.part('identity')
  const webs = configuration.list('web')
  const intermediate = readKeyed(signing, 'cert', 'key', 'edge.enrollment.signingCert')
  requireUsable(intermediate.certificate, now)
  const sources = [
    ...[
      signing.pem('cert'),
      signing.pem('ca'),
      identity.pem('ca'),
      ...webs.map((web) => web.part('identity').pem('ca')),
    ],
  ].flatMap((pem) => pem ?? [])
  const authorities = distinct(sources.flatMap(({ content }) => parseCertificates(content))).filter(
    (certificate) => findAuthorityObjection(certificate) === undefined,
  )
  const root = findRoot(intermediate.certificate, authorities)
  const server = readServer(configuration, webs, identity)
  const former = authorities.filter((one) => one !== root && !one.raw.equals(intermediate.certificate.raw))
  const ownChain = parseCertificates(identity.pem('cert')?.content ?? '')
  const served = parseCertificates(server.chainPem)
  return {
    trustDomain: findTrustDomain([...served, ...authorities], configuration, identity),
    root: { certificate: root, key: readRootKey(root, sources, rootKeyPath) },
    intermediate,
    former,
    server: server.keyed,
    controllerId: readCommonName(ownChain[0] ?? server.keyed.certificate),
    hosts: listHosts(server.keyed.certificate),
    clientBundle: authorities,
  }
}

/** The listener of the address that clients know, or the default of all listeners. */
function readServer(
  configuration: SourceConfiguration,
  webs: readonly SourceConfiguration[],
  identity: SourceConfiguration,
): { readonly keyed: KeyedCertificate; readonly chainPem: string } {
  const address = configuration.part('edge').part('api').text('address')
  const web = webs.find((each) => each.list('bindPoints').some((point) => point.text('address') === address)) ?? webs[0]
  const own = web?.part('identity')
  const holder = own?.has('server_cert') ? own : identity
  const key = holder.has('server_key') ? 'server_key' : 'key'
  const keyed = readKeyed(holder, 'server_cert', key, 'identity')
  return { keyed, chainPem: holder.pem('server_cert')?.content ?? '' }
}

function readKeyed(part: SourceConfiguration, cert: string, key: string, place: string): KeyedCertificate {
  const [certificate] = parseCertificates(part.pem(cert)?.content ?? '')
  const keyPem = part.pem(key)
  if (!certificate || !keyPem) {
    const problem = `the configuration names no certificate and key at ${place}.${cert} and ${place}.${key}`
    throw new SourceError(
      'CERTIFICATE_MISSING',
      problem,
      'state the configuration of a controller, not that of a router',
    )
  }
  const privateKey = parseKey(keyPem.content, `${place}.${key}`)
  if (!certificate.checkPrivateKey(privateKey))
    throw new SourceError(
      'KEY_MISMATCH',
      `${place}.${key} is not the key of ${place}.${cert}`,
      'correct the configuration',
    )
  return { certificate, key: privateKey }
}

function parseKey(pem: string, place: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw new SourceError(
      'KEY_UNUSABLE',
      `${place} is not a private key without a passphrase`,
      'decrypt the key first',
      error,
    )
  }
}

function parseCertificates(pem: string): X509Certificate[] {
  return parsePemBlocks(pem)
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ bytes }) => new X509Certificate(bytes))
}

function requireUsable(signer: X509Certificate, now: number): void {
  const objection = findAuthorityObjection(signer)
  if (objection === undefined && isWithinDates(signer, now)) return
  const reason = objection ?? `it is valid from ${signer.validFrom} to ${signer.validTo}`
  const remedy = "replace the signing certificate of OpenZiti's controller first"
  throw new SourceError('SIGNER_UNUSABLE', `the signing certificate cannot issue certificates: ${reason}`, remedy)
}

function findRoot(signer: X509Certificate, authorities: readonly X509Certificate[]): X509Certificate {
  let below = signer
  for (let depth = 0; depth <= authorities.length; depth += 1) {
    if (isSelfSigned(below)) return below
    const issuer = authorities.find((one) => below.checkIssued(one) && below.verify(one.publicKey))
    if (!issuer) break
    below = issuer
  }
  const remedy = 'add the root to the file that identity.ca names'
  throw new SourceError(
    'ROOT_MISSING',
    'no authority of the configuration is the root of the signing certificate',
    remedy,
  )
}

/** OpenZiti's tools store the key of an authority in a folder beside that of its certificate. */
function readRootKey(
  root: X509Certificate,
  sources: readonly { readonly path: string | undefined }[],
  rootKeyPath: string | undefined,
): KeyObject | undefined {
  if (rootKeyPath !== undefined) {
    const key = parseKey(readFileSync(rootKeyPath, 'utf8'), rootKeyPath)
    if (root.checkPrivateKey(key)) return key
    throw new SourceError('KEY_MISMATCH', `${rootKeyPath} is not the key of the root`, 'state the key of the root')
  }
  const candidates = sources.flatMap(({ path }) => {
    if (path === undefined) return []
    const name = basename(path, extname(path))
    return [join(dirname(path), '../keys', `${name}.key`)]
  })
  for (const path of candidates) {
    if (!existsSync(path)) continue
    const key = parseKey(readFileSync(path, 'utf8'), path)
    if (root.checkPrivateKey(key)) return key
  }
  return undefined
}

/** The trust domain of SPIFFE ids, as OpenZiti's controller finds it. */
function findTrustDomain(
  certificates: readonly X509Certificate[],
  configuration: SourceConfiguration,
  identity: SourceConfiguration,
): string {
  for (const { subjectAltName } of certificates) {
    const [, domain] = /URI:spiffe:\/\/([^/,\s]+)/.exec(subjectAltName ?? '') ?? []
    if (domain !== undefined) return domain
  }
  const configured = configuration.text('trustDomain')?.replace(/^spiffe:\/\//, '')
  if (configured) return configured
  const roots = parseCertificates(identity.pem('ca')?.content ?? '')
  const root = roots.find(isSelfSigned) ?? roots[0]
  return createHash('sha1')
    .update(root?.raw ?? '')
    .digest('hex')
}

function readCommonName({ subject }: X509Certificate): string {
  return /^CN=(.*)$/m.exec(subject)?.[1]?.trim() ?? ''
}

function listHosts({ subjectAltName }: X509Certificate): string[] {
  const names = [...(subjectAltName ?? '').matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, name = '']) => name)
  return [...new Set(names)]
}

function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((one) => [one.fingerprint256, one])).values()]
}
