// Fetches the root certificate of a controller, so that it can be compared and pinned.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { computeFingerprint256, toCertificatePem } from '../../src/pki/certificates.ts'
import { isSelfSigned } from '../../src/pki/chains.ts'
import { DerError } from '../../src/pki/der.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { decodeCertificates } from '../../src/pki/pkcs7.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'

export interface RootCertificate {
  /** With other roots of the same controller behind it, if it replaces its root. */
  readonly pem: string
  /** SHA-256, lower-case hex. */
  readonly fingerprint: string
}

/** The certificates that a controller offers to a client that does not trust it yet. */
export interface OfferedTrust {
  /** The certificate of the TLS server, on the connection that the authorities came from. */
  readonly server: X509Certificate
  readonly authorities: readonly X509Certificate[]
}

/**
 * The authorities of a controller; undefined if it offers none. They are not verified: the caller must verify them, or compare
 * the fingerprint of the root with one from a trusted place, before they are pinned.
 * @throws UnreachableError if there is no response
 */
export async function fetchOfferedTrust(url: string): Promise<OfferedTrust | undefined> {
  let server: X509Certificate | undefined
  const onServerCertificate = (certificate: X509Certificate) => {
    server = certificate
  }
  const transport = createHttpTransport({ url, rootPem: undefined, onServerCertificate })
  try {
    const reply = await transport.send({ method: 'GET', path: '/.well-known/est/cacerts' })
    if (reply.status !== 200 || !server) return undefined
    return { server, authorities: decodeCertificates(reply.text) }
  } catch (error) {
    // The response of another kind of server.
    if (error instanceof DerError) return undefined
    throw error
  } finally {
    await transport.close()
  }
}

/**
 * The root certificates that a controller offers, unverified like all that it offers. There are two while it replaces its
 * root, the new one first.
 */
export async function fetchRoots(url: string): Promise<RootCertificate[]> {
  const { authorities = [] } = (await fetchOfferedTrust(url)) ?? {}
  return authorities.filter(isSelfSigned).map(toRootCertificate)
}

/** The root certificates in a certificate store, as controllers send it. */
export function readRoots(base64: string): RootCertificate[] {
  return decodeCertificates(base64).filter(isSelfSigned).map(toRootCertificate)
}

/** The root certificates in PEM text. */
export function listRoots(text: string): RootCertificate[] {
  const certificates = parsePemBlocks(text).map(({ bytes }) => new X509Certificate(bytes))
  return certificates.filter(isSelfSigned).map(toRootCertificate)
}

/** The root certificate in a PEM file, with all other roots in it; undefined if it contains none. */
export function rootFromPem(text: string): RootCertificate | undefined {
  const roots = listRoots(text)
  const [root] = roots
  return root && { pem: roots.map(({ pem }) => pem).join(''), fingerprint: root.fingerprint }
}

/**
 * The root certificates of a PEM file.
 * @param field the flag that names the file, for errors
 * @throws CommandError with exit code 2 if it cannot be read, or contains none
 */
export function readRootFile(file: string, field?: string): RootCertificate {
  const more = field === undefined ? {} : { field }
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw makeUsageError(`${file} cannot be read: ${describeFileError(error, file)}`, more)
  }
  const root = rootFromPem(text)
  if (!root) throw makeUsageError(`${file} does not contain a root certificate`, more)
  return root
}

function toRootCertificate(root: X509Certificate): RootCertificate {
  return { pem: toCertificatePem(root), fingerprint: computeFingerprint256(root) }
}
