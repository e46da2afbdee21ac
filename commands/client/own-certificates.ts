// Reads the certificate that a user brings for an enrollment: from PEM files, or from a PKCS #12 bundle.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ClientCertificate } from '../../src/client/http-transport.ts'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { parsePemBlocks, toKeyPem, toPem } from '../../src/pki/pem.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { promptPassword } from '../terminal/prompts.ts'
import { assertKeyPair } from './identity-files.ts'
import { readPkcs12 } from './pkcs12.ts'

export interface CertificateFlags {
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly pkcs12?: string | undefined
  readonly 'pkcs12-password-file'?: string | undefined
}

/**
 * The certificate of the flags, first in its chain, with its key. @throws CommandError with exit code 2 if a file cannot be
 * used, or the key does not belong to the certificate
 */
export async function readOwnCertificate(flags: CertificateFlags): Promise<ClientCertificate> {
  const { cert, key, pkcs12 } = flags
  if (pkcs12 !== undefined) return readBundle(pkcs12, flags['pkcs12-password-file'])
  if (cert === undefined || key === undefined) {
    throw makeUsageError('this token requires a certificate: missing flags --cert and --key, or --pkcs12')
  }
  const certificatePem = parsePemBlocks(readBytes('cert', cert).toString('utf8'))
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ bytes }) => toPem('CERTIFICATE', bytes))
    .join('')
  const certificate = { certificatePem, keyPem: readKeyPem(key) }
  assertKeyPair(cert, certificate)
  return certificate
}

async function readBundle(file: string, passwordFile: string | undefined): Promise<ClientCertificate> {
  const bytes = readBytes('pkcs12', file)
  const password = await promptPassword(`Password of ${file}`, passwordFile, 'pkcs12-password-file')
  const { keyPem, certificatePems } = await readPkcs12(file, bytes, password)
  const key = createPrivateKey(keyPem)
  const isOwn = (pem: string) => new X509Certificate(pem).checkPrivateKey(key)
  const own = certificatePems.filter(isOwn)
  if (own.length === 0) throw makeUsageError(`${file} does not contain the certificate of its key`, { field: 'pkcs12' })
  return { certificatePem: [...own, ...certificatePems.filter((pem) => !isOwn(pem))].join(''), keyPem }
}

function readKeyPem(file: string): string {
  const text = readBytes('key', file).toString('utf8')
  // PKCS #8, and the format of RFC 1421.
  if (/-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    const hint = `openssl pkey -in ${quoteShellWord(file)} -out FILE.key writes it without a password`
    throw makeUsageError(`${file} is encrypted`, { field: 'key', hint })
  }
  try {
    return toKeyPem(createPrivateKey(text))
  } catch (error) {
    throw makeUsageError(`${file} is not a private key in PEM: ${(error as Error).message}`, { field: 'key' })
  }
}

function readBytes(flag: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw makeUsageError(`--${flag} cannot be read: ${file}: ${describeFileError(error, file)}`, { field: flag })
  }
}
