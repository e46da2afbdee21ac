// Keys of clients and their signing requests (RFC 2986), made before the clock runs.
import { generateKeyPairSync, sign } from 'node:crypto'
import { der } from '../../src/pki/der.ts'
import { encodeDistinguishedName } from '../../src/pki/names.ts'
import { toPem } from '../../src/pki/pem.ts'

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'

export interface ClientKey {
  /** PEM, PKCS#8. */
  readonly key: string
  /** PEM. */
  readonly request: string
}

/** A new P-256 key and a request for a certificate on it. */
export function clientKey(commonName: string): ClientKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const info = der.sequence(
    der.integer(0),
    encodeDistinguishedName('bench', commonName),
    publicKey.export({ type: 'spki', format: 'der' }),
    der.explicit(0),
  )
  const request = der.sequence(
    info,
    der.sequence(der.oid(ECDSA_WITH_SHA256)),
    der.bitString(sign('sha256', info, privateKey)),
  )
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    request: toPem('CERTIFICATE REQUEST', request),
  }
}
