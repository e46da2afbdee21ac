// Keys and signing requests of clients, made by another library than the one under test.
import 'reflect-metadata'
import { createPrivateKey, type KeyObject, webcrypto } from 'node:crypto'
import { request as httpsRequest } from 'node:https'
import * as x509 from '@peculiar/x509'
import { type TestResponse, toTestResponse } from './controller.ts'

x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0])

export type KeyKind = 'P-256' | 'P-384' | 'P-521' | 'RSA-2048' | 'RSA-4096' | 'RSA-1024' | 'Ed25519'

type Algorithm = Parameters<typeof webcrypto.subtle.generateKey>[0]

export const keyAlgorithms: Readonly<Record<KeyKind, { algorithm: Algorithm; hash?: string }>> = {
  'P-256': { algorithm: { name: 'ECDSA', namedCurve: 'P-256' } as Algorithm, hash: 'SHA-256' },
  'P-384': { algorithm: { name: 'ECDSA', namedCurve: 'P-384' } as Algorithm, hash: 'SHA-384' },
  'P-521': { algorithm: { name: 'ECDSA', namedCurve: 'P-521' } as Algorithm, hash: 'SHA-512' },
  'RSA-2048': { algorithm: rsa(2048), hash: 'SHA-256' },
  'RSA-4096': { algorithm: rsa(4096), hash: 'SHA-256' },
  'RSA-1024': { algorithm: rsa(1024), hash: 'SHA-256' },
  Ed25519: { algorithm: { name: 'Ed25519' } },
}

function rsa(modulusLength: number): Algorithm {
  return {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  } as Algorithm
}

export interface ClientKey {
  readonly csr: string
  readonly keyPem: string
  readonly key: KeyObject
}

/** Names that a request asks for; those of identities must not get into their certificates. */
export type RequestedNames = readonly { readonly type: 'dns' | 'ip' | 'url' | 'email' | 'dn'; readonly value: string }[]

/** A new key with a signing request for it. */
export async function clientKey(
  commonName: string,
  kind: KeyKind = 'P-256',
  names: RequestedNames = [{ type: 'dns', value: 'smuggled.example' }],
): Promise<ClientKey> {
  const { algorithm, hash } = keyAlgorithms[kind]
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `O=test, CN=${commonName}`,
    keys: keys as never,
    signingAlgorithm: { ...(algorithm as object), ...(hash ? { hash } : {}) } as never,
    extensions: [new x509.SubjectAlternativeNameExtension([...names])],
  })
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  return { csr: `${request.toString('pem')}\n`, keyPem: key.export({ type: 'pkcs8', format: 'pem' }) as string, key }
}

export interface TlsCall {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: unknown
  /** The client's certificates, in the order in which they are sent. */
  readonly cert?: string
  readonly key?: string
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3'
}

/** One request over a TLS connection of its own. */
export function callOverTls(
  url: string,
  rootPem: string,
  { method, path, headers = {}, body, cert, key, maxVersion }: TlsCall,
): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const type = text === undefined ? {} : { 'content-type': 'application/json' }
    const request = httpsRequest(
      new URL(path, url),
      { method, ca: rootPem, cert, key, maxVersion, agent: false, headers: { ...type, ...headers } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve(
            toTestResponse({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString(),
            }),
          ),
        )
      },
    )
    request.on('error', reject)
    request.end(text)
  })
}

export { x509 }
