// Identity files: the address, the certificate, the key and the authorities of an identity, as OpenZiti's SDKs read them.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ClientCertificate } from '../../src/client/http-transport.ts'
import { type CommandError, makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { CLIENT_PATH } from './client.ts'

/** The contents of an identity file: how the identity reaches its controller, and signs in there. */
export interface IdentityFile {
  /** `https://host:port` */
  readonly url: string
  readonly clientCertificate: ClientCertificate
  /** The authorities that identify the controller, as PEM; undefined if the file has none. */
  readonly authoritiesPem: string | undefined
  /** Whether certificate and key are in the file itself. SDKs also write the locations of other files. */
  readonly isSelfContained: boolean
  /** The JSON as it was read, because SDKs store more in it. */
  readonly content: IdentityFileContent
}

interface IdentityFileContent {
  readonly ztAPI?: unknown
  readonly ztAPIs?: unknown
  readonly id?: { readonly cert?: unknown; readonly key?: unknown; readonly ca?: unknown }
}

// Before a value that is the PEM itself; other values are locations of it.
const PEM_PREFIX = 'pem:'

/** The path of a renewed identity file, until the controller has confirmed its certificate. */
export function toPendingPath(path: string): string {
  return `${path}.pending`
}

/** A new identity file. */
export function makeIdentityFile(
  url: string,
  clientCertificate: ClientCertificate,
  authoritiesPem: string,
): IdentityFile {
  return { url, clientCertificate, authoritiesPem, isSelfContained: true, content: { ztAPI: url + CLIENT_PATH } }
}

/** The text of an identity file. */
export function renderIdentityFile({ clientCertificate, authoritiesPem, content }: IdentityFile): string {
  const { certificatePem, keyPem } = clientCertificate
  const id = {
    ...content.id,
    key: PEM_PREFIX + keyPem,
    cert: PEM_PREFIX + certificatePem,
    ...(authoritiesPem === undefined ? {} : { ca: PEM_PREFIX + authoritiesPem }),
  }
  return `${JSON.stringify({ ...content, id }, null, 2)}\n`
}

/**
 * Reads an identity file, of this program or of an SDK.
 * @param descriptor the file, if it is open
 * @throws CommandError with exit code 2 if it is not one, or its key does not belong to its certificate
 */
export function readIdentityFile(path: string, descriptor?: number): IdentityFile {
  const content = parseContent(path, readContent(path, descriptor ?? path))
  const { cert, key, ca } = content.id ?? {}
  const clientCertificate = {
    certificatePem: readPemMember(path, 'cert', cert),
    keyPem: readPemMember(path, 'key', key),
  }
  assertKeyPair(path, clientCertificate)
  return {
    url: readUrl(path, content),
    clientCertificate,
    authoritiesPem: ca === undefined || ca === '' ? undefined : readPemMember(path, 'ca', ca),
    isSelfContained: isPem(cert) && isPem(key),
    content,
  }
}

function parseContent(path: string, text: string): IdentityFileContent {
  try {
    const content = JSON.parse(text) as unknown
    if (typeof content === 'object' && content !== null) return content
  } catch {
    // Reported below.
  }
  throw notIdentityFileError(path, 'it does not contain a JSON object')
}

function readContent(path: string, location: string | number): string {
  try {
    return readFileSync(location, 'utf8')
  } catch (error) {
    throw makeUsageError(`${path} cannot be read: ${describeFileError(error, String(location))}`)
  }
}

/** The address of the controller, the first of several. */
function readUrl(path: string, { ztAPI, ztAPIs }: IdentityFileContent): string {
  const [address = ztAPI] = Array.isArray(ztAPIs) ? (ztAPIs as unknown[]) : []
  if (typeof address === 'string' && URL.canParse(address) && address.startsWith('https://')) {
    return new URL(address).origin
  }
  throw notIdentityFileError(path, 'ztAPI must be the URL of a controller')
}

function isPem(value: unknown): value is string {
  return typeof value === 'string' && (value.startsWith(PEM_PREFIX) || value.startsWith('-----BEGIN'))
}

/** The PEM of a member: the value itself, or the content of the file that it names. */
function readPemMember(path: string, member: string, value: unknown): string {
  if (isPem(value)) return value.startsWith(PEM_PREFIX) ? value.slice(PEM_PREFIX.length) : value
  if (typeof value !== 'string' || value === '') throw notIdentityFileError(path, `id.${member} is missing`)
  const [, scheme] = /^([a-z][a-z0-9+.-]+):/i.exec(value) ?? []
  if (scheme !== undefined && scheme !== 'file') {
    throw makeUsageError(`${path}: id.${member} is in a ${scheme} store, which this program cannot read`)
  }
  return readContent(path, value.startsWith('file://') ? fileURLToPath(value) : value.replace(/^file:/, ''))
}

/**
 * @param source the file, or the flags, for messages
 * @throws CommandError with exit code 2 if the first certificate or the key cannot be read, or they do not match
 */
export function assertKeyPair(source: string, { certificatePem, keyPem }: ClientCertificate): void {
  const certificate = parseOrThrow(() => new X509Certificate(certificatePem), `${source}: unreadable certificate`)
  const key = parseOrThrow(() => createPrivateKey(keyPem), `${source}: unreadable private key`)
  if (!certificate.checkPrivateKey(key)) throw makeUsageError(`${source}: the key does not belong to the certificate`)
}

function parseOrThrow<T>(parse: () => T, message: string): T {
  try {
    return parse()
  } catch (error) {
    throw makeUsageError(`${message}: ${(error as Error).message}`)
  }
}

function notIdentityFileError(path: string, reason: string): CommandError {
  return makeUsageError(`${path} is not an identity file: ${reason}`, {
    hint: 'controller enroll FILE.jwt creates one',
  })
}
