// Fetches the root certificate of a controller, so that it can be compared and pinned.
import { X509Certificate } from 'node:crypto'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { computeFingerprint256, toCertificatePem } from '../../src/pki/certificates.ts'
import { isSelfSigned } from '../../src/pki/chains.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { decodeCertificates } from '../../src/pki/pkcs7.ts'

export interface RootCertificate {
  readonly pem: string
  /** SHA-256, lower-case hex. */
  readonly fingerprint: string
}

/**
 * The root certificate that a controller offers; undefined if it offers none. It is not verified: the caller must compare its
 * fingerprint with one from a trusted place before pinning it.
 * @throws UnreachableError if there is no response
 */
export async function fetchRoot(url: string): Promise<RootCertificate | undefined> {
  const transport = createHttpTransport({ url, rootPem: undefined })
  try {
    const reply = await transport.send({ method: 'GET', path: '/.well-known/est/cacerts' })
    if (reply.status !== 200) return undefined
    const root = decodeCertificates(reply.text).find(isSelfSigned)
    return root && toRootCertificate(root)
  } finally {
    await transport.close()
  }
}

/** The root certificate in a PEM file; undefined if it contains none. */
export function rootFromPem(text: string): RootCertificate | undefined {
  const certificates = parsePemBlocks(text).map(({ bytes }) => new X509Certificate(bytes))
  const root = certificates.find(isSelfSigned)
  return root && toRootCertificate(root)
}

function toRootCertificate(root: X509Certificate): RootCertificate {
  return { pem: toCertificatePem(root), fingerprint: computeFingerprint256(root) }
}
