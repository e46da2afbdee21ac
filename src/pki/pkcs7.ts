// Certs-only PKCS#7 (RFC 2315 §9): the format in which enrolling clients receive authorities (RFC 7030 §4.1.3).
import { X509Certificate } from 'node:crypto'
import { DerReader, der } from './der.ts'
import { wrapLines } from './pem.ts'

/** Returns base64 in lines of 64 characters, without PEM headers and without a final line end, as clients expect it. */
export function encodeCertificateStore(certificates: readonly X509Certificate[]): string {
  const signedData = der.sequence(
    der.integer(1),
    der.set(), // digest algorithms
    der.sequence(der.oid('1.2.840.113549.1.7.1')), // data, without content
    der.explicit(0, ...certificates.map((certificate) => certificate.raw)),
    der.explicit(1), // revocation lists
    der.set(), // signers
  )
  const content = der.sequence(der.oid('1.2.840.113549.1.7.2'), der.explicit(0, signedData))
  return wrapLines(content.toString('base64'))
}

/** Returns the certificates of a certs-only PKCS#7 store in base64. @throws DerError if it is not one */
export function decodeCertificates(base64: string): X509Certificate[] {
  const content = new DerReader(Buffer.from(base64, 'base64')).sequence()
  content.oid()
  const signedData = new DerReader(content.next().content).sequence()
  signedData.next() // version
  signedData.next() // digest algorithms
  signedData.next() // content
  const certificates = new DerReader(signedData.next().content)
  const decoded: X509Certificate[] = []
  while (!certificates.isAtEnd) decoded.push(new X509Certificate(certificates.next().bytes))
  return decoded
}
