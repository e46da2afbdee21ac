// The certificates of OpenZiti's controller: which of its files becomes which part of this controller's authority.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import type { AdoptedAuthority, KeyedCertificate } from '../pki/authority-files.ts'
import { isWithinDates, listNamedHosts } from '../pki/certificates.ts'
import { findAuthorityObjection, isSelfSigned } from '../pki/chains.ts'
import { parsePemBlocks } from '../pki/pem.ts'
import type { SourceConfiguration, SourcePem } from './source-configuration.ts'
import { SourceError } from './source-error.ts'

const CLIENT_BINDINGS: ReadonlySet<string> = new Set(['edge-client', 'edge-management'])

/** The authority, and what else the certificates of a controller say. */
export interface SourceAuthority extends AdoptedAuthority {
  /** The name by which routers know the controller. */
  readonly controllerId: string
  /** The hosts for which the server certificates of its listeners are valid. */
  readonly hosts: readonly string[]
  /** The authorities that clients stored when they enrolled. */
  readonly clientBundle: readonly X509Certificate[]
}

/** @param rootKeyPath the path of the root's key, if it is not next to its certificate */
export function readSourceAuthority(
  configuration: SourceConfiguration,
  now: number,
  rootKeyPath: string | undefined,
): SourceAuthority {
  const signing = configuration.part('edge').part('enrollment').part('signingCert')
  const identity = configuration.part('identity')
  const webs = configuration.list('web')
  const intermediate = readKeyed(signing, 'cert', 'key')
  requireUsable(intermediate.certificate, now)
  const own = [...signing.pems('cert'), ...signing.pems('ca'), ...identity.pems('ca')]
  const sources = [...own, ...webs.flatMap((web) => web.part('identity').pems('ca'))]
  // Clients store those of the listeners for clients and administrators, and of no other.
  const clientWebs = webs.filter((web) =>
    web.list('apis').some((api) => CLIENT_BINDINGS.has(api.text('binding') ?? '')),
  )
  const authorities = listAuthorities(sources)
  const root = findRoot(intermediate.certificate, authorities, identity.describe('ca'))
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
    hosts: listHosts([identity, ...webs.map((web) => web.part('identity'))]),
    clientBundle: listAuthorities([...own, ...clientWebs.flatMap((web) => web.part('identity').pems('ca'))]),
  }
}

function listAuthorities(sources: readonly SourcePem[]): X509Certificate[] {
  return distinct(sources.flatMap(({ content }) => parseCertificates(content))).filter(
    (certificate) => findAuthorityObjection(certificate) === undefined,
  )
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
  const keyed = readKeyed(holder, 'server_cert', key)
  return { keyed, chainPem: holder.pem('server_cert')?.content ?? '' }
}

function readKeyed(part: SourceConfiguration, cert: string, key: string): KeyedCertificate {
  const [certName, keyName] = [part.describe(cert), part.describe(key)]
  const [certificate] = parseCertificates(part.pem(cert)?.content ?? '')
  const keyPem = part.pem(key)
  if (!certificate || !keyPem) {
    const problem = `there is not both a certificate and its key at ${certName} and ${keyName}`
    throw new SourceError('CERTIFICATE_MISSING', problem, 'state those of a controller, not of a router')
  }
  const privateKey = parseKey(keyPem.content, keyName)
  if (!certificate.checkPrivateKey(privateKey))
    throw new SourceError(
      'KEY_MISMATCH',
      `${keyName} is not the key of ${certName}`,
      'state the key of the certificate',
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

/** Returns the certificates among the blocks of a PEM text. @throws SourceError if one cannot be read */
export function parseCertificates(pem: string): X509Certificate[] {
  return parsePemBlocks(pem)
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ bytes }) => parseCertificate(bytes))
}

function parseCertificate(bytes: Buffer): X509Certificate {
  try {
    return new X509Certificate(bytes)
  } catch (error) {
    const problem = 'a certificate of the former controller cannot be read'
    throw new SourceError('CERTIFICATE_UNUSABLE', problem, 'look at its files with openssl x509 -text', error)
  }
}

function requireUsable(signer: X509Certificate, now: number): void {
  const objection = findAuthorityObjection(signer)
  if (objection === undefined && isWithinDates(signer, now)) return
  const reason = objection ?? `it is valid from ${signer.validFrom} to ${signer.validTo}`
  const remedy = "replace the signing certificate of OpenZiti's controller first"
  throw new SourceError('SIGNER_UNUSABLE', `the signing certificate cannot issue certificates: ${reason}`, remedy)
}

function findRoot(
  signer: X509Certificate,
  authorities: readonly X509Certificate[],
  bundleName: string,
): X509Certificate {
  let below = signer
  for (let depth = 0; depth <= authorities.length; depth += 1) {
    if (isSelfSigned(below)) return below
    const issuer = authorities.find((one) => below.checkIssued(one) && below.verify(one.publicKey))
    if (!issuer) break
    below = issuer
  }
  const remedy = `add the root to the file that ${bundleName} names`
  throw new SourceError('ROOT_MISSING', 'none of the authorities is the root of the signing certificate', remedy)
}

/** OpenZiti's tools store the key of an authority in a folder next to the one with its certificate. */
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
  const roots = identity.pems('ca').flatMap(({ content }) => parseCertificates(content))
  const root = roots.find(isSelfSigned) ?? roots[0]
  return createHash('sha1')
    .update(root?.raw ?? '')
    .digest('hex')
}

function readCommonName({ subject }: X509Certificate): string {
  return /^CN=(.*)$/m.exec(subject)?.[1]?.trim() ?? ''
}

/** Clients and routers connect to different listeners, whose certificates may name different hosts. */
function listHosts(identities: readonly SourceConfiguration[]): string[] {
  const leaves = identities.flatMap((each) => parseCertificates(each.pem('server_cert')?.content ?? '')[0] ?? [])
  return [...new Set(leaves.flatMap(listNamedHosts))]
}

function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((one) => [one.fingerprint256, one])).values()]
}
