// Finds the root of a controller that is not trusted yet, so that it can be compared and pinned.
import { X509Certificate } from 'node:crypto'
import { certificatePem, fingerprint256 } from '../pki/certificates.ts'
import { isSelfSigned } from '../pki/chains.ts'
import { pemBlocks } from '../pki/pem.ts'
import { certificatesOf } from '../pki/pkcs7.ts'
import { httpTransport } from './http-transport.ts'

export interface FoundRoot {
  readonly pem: string
  /** SHA-256, lower-case hex. */
  readonly fingerprint: string
}

/**
 * The root that a controller says is its own. Nothing is trusted by this: whoever asked compares the fingerprint with one
 * from elsewhere, and from then on only that root counts. @throws Unreachable
 */
export async function offeredRoot(url: string): Promise<FoundRoot | undefined> {
  const transport = httpTransport({ url, rootPem: undefined })
  try {
    const reply = await transport.send({ method: 'GET', path: '/.well-known/est/cacerts' })
    if (reply.status !== 200) return undefined
    const root = certificatesOf(reply.text).find(isSelfSigned)
    return root && found(root)
  } finally {
    await transport.close()
  }
}

/** The root in a PEM file. */
export function rootFromPem(text: string): FoundRoot | undefined {
  const certificates = pemBlocks(text).map(({ bytes }) => new X509Certificate(bytes))
  const root = certificates.find(isSelfSigned)
  return root && found(root)
}

function found(root: X509Certificate): FoundRoot {
  return { pem: certificatePem(root), fingerprint: fingerprint256(root) }
}
