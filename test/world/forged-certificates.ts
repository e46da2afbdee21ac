// Certificates with any content, well-formed or not, that no authority would issue.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { toSigningAlgorithm } from '../../src/pki/algorithms.ts'
import { der } from '../../src/pki/der.ts'
import { encodeDistinguishedName } from '../../src/pki/names.ts'

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export function newKeyPair(kind: 'P-256' | 'P-384' | 'RSA-2048' | 'Ed25519'): KeyPair {
  if (kind === 'RSA-2048') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  return kind === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: kind })
}

/** The contents of a certificate, and its signer. */
export interface Forgery {
  /** Common names. */
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly signingKey: KeyObject
  readonly notBefore: number
  readonly notAfter: number
  /** DER of each. */
  readonly extensions: readonly Buffer[]
  /** The algorithm that the certificate names, and the digest of its signature, in place of those of the key. */
  readonly algorithm?: { readonly identifier: Buffer; readonly digest: string }
  readonly isSignatureBroken?: boolean
}

export function forgeCertificate(forgery: Forgery): X509Certificate {
  const { digest, identifier } = forgery.algorithm ?? toSigningAlgorithm(forgery.signingKey)
  const body = der.sequence(
    der.explicit(0, der.integer(2)),
    der.unsigned(randomBytes(12)),
    identifier,
    encodeDistinguishedName('test', forgery.issuer),
    der.sequence(der.time(forgery.notBefore), der.time(forgery.notAfter)),
    encodeDistinguishedName('test', forgery.subject),
    forgery.publicKey.export({ type: 'spki', format: 'der' }),
    ...(forgery.extensions.length > 0 ? [der.explicit(3, der.sequence(...forgery.extensions))] : []),
  )
  const signature = sign(digest, forgery.isSignatureBroken ? Buffer.from('other content') : body, forgery.signingKey)
  return new X509Certificate(der.sequence(body, identifier, der.bitString(signature)))
}

function extension(oid: string, value: Buffer, isCritical = false): Buffer {
  return der.sequence(der.oid(oid), ...(isCritical ? [der.boolean(true)] : []), der.octetString(value))
}

/** The extensions that tests put into certificates. */
export const extensions = {
  basicConstraints: (isAuthority: boolean, pathLength?: number) =>
    extension(
      '2.5.29.19',
      der.sequence(
        ...(isAuthority ? [der.boolean(true)] : []),
        ...(pathLength === undefined ? [] : [der.integer(pathLength)]),
      ),
      true,
    ),
  keyUsage: (usage: 'keyCertSign' | 'digitalSignature' | 'keyEncipherment') => {
    const [bits, unused] = { keyCertSign: [0x04, 2], digitalSignature: [0x80, 7], keyEncipherment: [0x20, 5] }[usage]
    return extension('2.5.29.15', der.bitString(Buffer.from([bits as number]), unused), true)
  },
  extendedKeyUsage: (...oids: readonly string[]) => extension('2.5.29.37', der.sequence(...oids.map(der.oid))),
  subjectKey: (key: KeyObject) => extension('2.5.29.14', der.octetString(identifyKey(key))),
  issuerKey: (key: KeyObject) => extension('2.5.29.35', der.sequence(der.implicit(0, identifyKey(key)))),
  /** Permits names below one domain. */
  nameConstraints: (isCritical: boolean) => {
    const permitted = der.sequence(der.implicit(2, Buffer.from('example.com')))
    return extension('2.5.29.30', der.sequence(der.explicit(0, permitted)), isCritical)
  },
  anyPolicy: (isCritical: boolean) =>
    extension('2.5.29.32', der.sequence(der.sequence(der.oid('2.5.29.32.0'))), isCritical),
  unknown: (isCritical: boolean) => extension('1.3.6.1.4.1.99999.1', der.utf8('unknown'), isCritical),
} as const

export const PURPOSES = { client: '1.3.6.1.5.5.7.3.2', server: '1.3.6.1.5.5.7.3.1', any: '2.5.29.37.0' } as const

function identifyKey(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
}
