// HTTPS and HTTP endpoints of other parties on loopback, with certificates of an authority that only a test trusts.
import { generateKeyPairSync, type KeyObject, type X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http'
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CertificatePurpose, issueCertificate, toCertificatePem } from '../../src/pki/certificates.ts'
import { encodeDistinguishedName } from '../../src/pki/names.ts'

const DAY_MS = 24 * 60 * 60_000
const authorityKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const authority = issue('authority', 'an authority of others', authorityKeys.publicKey)

function issue(purpose: CertificatePurpose, commonName: string, publicKey: KeyObject, certificate?: X509Certificate) {
  const subject = encodeDistinguishedName('test', commonName)
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
  const dates = { notBefore: Date.now() - DAY_MS, notAfter: Date.now() + DAY_MS }
  const issuer = { key: authorityKeys.privateKey, ...(certificate ? { certificate } : {}) }
  return issueCertificate({ purpose, subject, publicKeyInfo, names: { hosts: ['127.0.0.1'] }, ...dates }, issuer)
}

/** A certificate of a public key, as PEM. */
export function createCertificate(commonName: string, publicKey: KeyObject): string {
  return toCertificatePem(issue('client', commonName, publicKey, authority))
}

export interface Endpoint {
  /** `https://127.0.0.1:port` */
  readonly url: string
  /** The paths of its requests, in order. */
  readonly requests: readonly string[]
  /** Responds to a request; a test may replace it. */
  respond: RequestListener
  close(): Promise<void>
}

/** Opens an endpoint over TLS, or without it. */
export async function openEndpoint(respond: RequestListener, scheme: 'https' | 'http' = 'https'): Promise<Endpoint> {
  const requests: string[] = []
  const listener: RequestListener = (request, response) => {
    requests.push(request.url ?? '')
    endpoint.respond(request, response)
  }
  const server: Server =
    scheme === 'https' ? createHttpsServer(serverCertificate(), listener) : createHttpServer(listener)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const endpoint: Endpoint = {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    respond,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return endpoint
}

/** The key and the certificate of an endpoint on loopback, for a server over TLS. */
export function serverCertificate(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = issue('server', '127.0.0.1', publicKey, authority)
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: toCertificatePem(certificate) + toCertificatePem(authority),
  }
}

/** A file with the certificate of the authority that the endpoints have theirs from. */
export function authorityFile(): { path: string; pem: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'authority-'))
  const path = join(directory, 'authority.pem')
  writeFileSync(path, toCertificatePem(authority))
  return { path, pem: toCertificatePem(authority), remove: () => rmSync(directory, { recursive: true }) }
}

/** Responds with a JSON value. */
export function json(value: unknown, headers: Readonly<Record<string, string>> = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  }
}

/** A request to an endpoint of others, by the authority that only a test trusts unless a root is given. */
export function requestOverTls(
  url: string,
  {
    body,
    rootPem,
    ...options
  }: {
    method?: string
    headers?: Readonly<Record<string, string>>
    body?: string
    rootPem?: string
    cert?: string
    key?: string
  } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      url,
      { ...options, ca: rootPem ?? toCertificatePem(authority), agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString('utf8'),
          }),
        )
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}
