// The bundles of authorities that clients stored when they enrolled, as an operator copies them from devices: whether each verifies
// the server certificate of this controller.
import type { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Instant } from '../foundation/clock.ts'
import type { Authority } from '../pki/authority.ts'
import { findChainObjection } from './served-chain.ts'
import { parseCertificates } from './source-authority.ts'
import { SourceError } from './source-error.ts'

export interface ClientBundle {
  readonly path: string
  readonly certificates: readonly X509Certificate[]
  /** The address of the controller that the client has, if the file is that of an identity. */
  readonly address: string | undefined
}

/** The reaction of a client with a bundle to this controller. */
export interface BundleVerdict {
  readonly path: string
  readonly certificates: number
  /** The reason for which it rejects the server certificate; null if it accepts it. */
  readonly objection: string | null
}

/** The parts of an identity file that concern the controller. */
interface IdentityFile {
  readonly ztAPI?: unknown
  readonly id?: { readonly ca?: unknown }
}

/** Reads a bundle: a PEM file, or an identity file of a client. @throws SourceError if it has no certificates */
export function readClientBundle(path: string): ClientBundle {
  const content = readBundleFile(path)
  const identity = parseIdentityFile(content)
  const certificates = parseCertificates(identity === undefined ? content : readAuthorities(identity, path))
  if (certificates.length === 0) {
    const remedy = 'state a PEM file with certificates, or the JSON file of an identity, which has them in id.ca'
    throw new SourceError('BUNDLE_UNUSABLE', `${path} has no certificates of authorities`, remedy)
  }
  const { ztAPI } = identity ?? {}
  const address = typeof ztAPI === 'string' ? ztAPI.replace(/^https:\/\//, '').split('/')[0] : undefined
  return { path, certificates, address }
}

export async function judgeClientBundle(
  { path, certificates }: ClientBundle,
  authority: Authority,
  now: Instant,
): Promise<BundleVerdict> {
  const objection = await findChainObjection(authority, certificates, now)
  return { path, certificates: certificates.length, objection: objection ?? null }
}

function readBundleFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new SourceError('FILE_UNUSABLE', `${path} cannot be read`, 'state a file that this account can read', error)
  }
}

function parseIdentityFile(content: string): IdentityFile | undefined {
  if (!content.trimStart().startsWith('{')) return undefined
  try {
    return JSON.parse(content) as IdentityFile
  } catch {
    return undefined
  }
}

/** The authorities stand in the file, or in another one, whose path may be relative to it. */
function readAuthorities({ id }: IdentityFile, path: string): string {
  const ca = typeof id?.ca === 'string' ? id.ca : ''
  if (ca === '' || ca.includes('-----BEGIN')) return ca
  return readBundleFile(resolve(dirname(path), ca.replace(/^file:(\/\/)?/, '')))
}
