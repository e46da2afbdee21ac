// Reads PKCS #12 bundles (RFC 7292), which contain a certificate with its private key, protected by a password.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { toPem } from '../../src/pki/pem.ts'
import { type CommandError, makeUsageError } from '../foundation/exit-codes.ts'

/** The content of a bundle, as PEM. */
export interface Pkcs12Content {
  readonly keyPem: string
  /** In the order of the bundle. */
  readonly certificatePems: readonly string[]
}

/** @throws CommandError with exit code 2 if it is not a bundle with one RSA key, or the password is wrong */
export async function readPkcs12(file: string, bytes: Buffer, password: string): Promise<Pkcs12Content> {
  const { default: forge } = await import('node-forge')
  const { pkcs12, pki, asn1 } = forge
  const toDer = (element: Parameters<typeof asn1.toDer>[0]) => Buffer.from(asn1.toDer(element).getBytes(), 'binary')
  const bundle = decode(file, password, () => pkcs12.pkcs12FromAsn1(asn1.fromDer(bytes.toString('binary')), password))
  const bags = bundle.safeContents.flatMap(({ safeBags }) => safeBags)
  const keyBags = bags.filter(({ type }) => type === pki.oids.keyBag || type === pki.oids.pkcs8ShroudedKeyBag)
  const [keyBag] = keyBags
  if (keyBags.length !== 1 || !keyBag) {
    throw makeUsageError(`${file} must contain one private key, not ${keyBags.length}`, { field: 'pkcs12' })
  }
  // The library reads RSA keys only.
  if (!keyBag.key) throw notRsaError(file)
  const key = createPrivateKey({ key: toDer(pki.privateKeyToAsn1(keyBag.key)), format: 'der', type: 'pkcs1' })
  const certificatePems = bags
    .filter(({ type }) => type === pki.oids.certBag)
    .map(({ cert, asn1: element }) => toDer(cert ? pki.certificateToAsn1(cert) : element))
    .map((der) => toPem('CERTIFICATE', new X509Certificate(der).raw))
  return { keyPem: key.export({ type: 'pkcs8', format: 'pem' }) as string, certificatePems }
}

function decode<T>(file: string, password: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { message } = error as Error
    if (!/password|MAC|decrypt/i.test(message)) {
      throw makeUsageError(`${file} is not a PKCS #12 bundle: ${message}`, { field: 'pkcs12' })
    }
    // The library encodes other characters in one of the two ways that a bundle requires.
    const isAscii = /^[\x20-\x7e]*$/.test(password)
    const reason = isAscii ? 'wrong password' : 'wrong password, or one with characters that are not ASCII'
    throw makeUsageError(`${file} cannot be opened: ${reason}`, {
      field: 'pkcs12-password-file',
      ...(isAscii ? {} : { hint: toConversion(file) }),
    })
  }
}

/** How a bundle becomes PEM files, with which the user enrolls. */
function toConversion(file: string): string {
  return `openssl pkcs12 -in ${quoteShellWord(file)} -noenc -out FILE.pem, then --cert FILE.pem --key FILE.pem`
}

function notRsaError(file: string): CommandError {
  return makeUsageError(`${file}: only RSA keys can be read from PKCS #12 bundles`, {
    field: 'pkcs12',
    hint: toConversion(file),
  })
}
