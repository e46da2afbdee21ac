// Issuers of external JWTs, with keys and certificates of their own, and tokens that are wrong in one respect.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { TestController } from './controller.ts'
import { createCertificate } from './endpoints.ts'
import type { People } from './people.ts'

export type KeyKind = 'P-256' | 'P-384' | 'P-521' | 'RSA' | 'Ed25519'

const ALGORITHMS: Readonly<Record<KeyKind, string>> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  RSA: 'RS256',
  Ed25519: 'EdDSA',
}

export interface IssuerKey {
  readonly kid: string
  readonly algorithm: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

/** How a token differs from a good one. A claim that is undefined is absent. */
export interface TokenChanges {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly key?: IssuerKey
}

export const AUDIENCE = 'the controller under test'

let sequence = 0

export function createIssuerKey(kind: KeyKind = 'P-256', kid = `key-${++sequence}`): IssuerKey {
  const pair =
    kind === 'RSA'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : kind === 'Ed25519'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: kind })
  return { kid, algorithm: ALGORITHMS[kind], ...pair }
}

/** The key as a key set shows it. */
export function toJwk({ kid, algorithm, publicKey }: IssuerKey): Record<string, unknown> {
  return { ...publicKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' }
}

/** An issuer by itself; a signer record makes a controller trust it. */
export class Issuer {
  readonly issuer = `https://issuer-${++sequence}.example`
  key: IssuerKey

  constructor(kind: KeyKind = 'P-256') {
    this.key = createIssuerKey(kind)
  }

  /** A certificate of its key, as PEM, that an administrator configures. */
  certificate(): string {
    return createCertificate(this.issuer, this.key.publicKey)
  }

  /** A token for a subject, valid for five minutes. */
  token(
    { clock }: Pick<TestController, 'clock'>,
    subject: string,
    { claims = {}, header = {}, key = this.key }: TokenChanges = {},
  ): string {
    const now = Math.floor(clock.now() / 1000)
    const standard = { iss: this.issuer, aud: AUDIENCE, sub: subject, iat: now, exp: now + 300 }
    return signToken({ alg: key.algorithm, kid: key.kid, ...header }, { ...standard, ...claims }, key)
  }

  /** The body of a signer that trusts this issuer by its certificate. */
  signerBody(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    const common = { name: `signer ${++sequence}`, issuer: this.issuer, audience: AUDIENCE, enabled: true }
    const source = 'jwksEndpoint' in changes ? {} : { certPem: this.certificate(), kid: this.key.kid }
    return { ...common, ...source, useExternalId: true, ...changes }
  }

  /** Makes a controller trust this issuer. Returns the id of the signer. */
  async trustedBy(people: People, changes: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return (await people.manage('POST', '/external-jwt-signers', this.signerBody(changes))).id
  }
}

/**
 * A JWS in compact form (RFC 7515), signed by the algorithm of the key, whatever the header says.
 * @param claims as an object, or as the text of one
 */
export function signToken(header: object, claims: object | string, { algorithm, privateKey }: IssuerKey): string {
  const text = `${encode(header)}.${encode(claims)}`
  const digest = algorithm === 'EdDSA' ? null : `sha${algorithm.slice(2)}`
  const signature = sign(digest, Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

function encode(value: object | string): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}
