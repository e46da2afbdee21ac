// The rules of signers: each has one source of keys that can be used.
import { X509Certificate } from 'node:crypto'
import type { OutboundClient } from '../../client/outbound-client.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import { type externalJwtSigners, NO_DATE } from '../../definitions/resources/external-jwt-signers.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import { readCertificateNames } from '../../pki/certificate-names.ts'
import {
  computeFingerprint,
  readNotAfter,
  readNotBefore,
  readPublicKey,
  toCertificatePem,
} from '../../pki/certificates.ts'
import { parseSinglePemBlock } from '../../pki/pem.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { SignerRecord } from '../../storage/external-tokens.ts'
import type { ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import type { KeyRefresher } from './key-refresher.ts'
import type { Signers } from './signers.ts'
import { listAlgorithms } from './signing-keys.ts'

/** The fields of a signer that follow from its certificate. */
type SignerCertificateFields = Pick<SignerRecord, 'certPem' | 'commonName' | 'fingerprint' | 'notBefore' | 'notAfter'>

const NO_CERTIFICATE_FIELDS: SignerCertificateFields = {
  certPem: null,
  commonName: '',
  fingerprint: null,
  notBefore: NO_DATE,
  notAfter: NO_DATE,
}

interface SignerBehaviorParts {
  readonly directory: Signers
  readonly keyRefresher: KeyRefresher
  readonly outbound: OutboundClient
}

export class SignerBehavior implements Behavior<typeof externalJwtSigners> {
  readonly #signers: Signers
  readonly #keyRefresher: KeyRefresher
  readonly #outbound: OutboundClient

  constructor({ directory, keyRefresher, outbound }: SignerBehaviorParts) {
    this.#signers = directory
    this.#keyRefresher = keyRefresher
    this.#outbound = outbound
  }

  /** @throws COULD_NOT_VALIDATE, INVALID_CERT_PEM, REFERENCED_ENTITY_NOT_FOUND if it has no source of keys, or two */
  async check(_tx: WriteContext, next: SignerRecord, previous: SignerRecord | undefined): Promise<void> {
    const { certPem, jwksEndpoint, externalAuthUrl } = next
    if ((certPem === null) === (jwksEndpoint === null)) {
      const reason = certPem === null ? 'is required, or jwksEndpoint' : 'cannot be set together with jwksEndpoint'
      throw errors.REFERENCED_ENTITY_NOT_FOUND({ field: 'certPem', reason })
    }
    if (externalAuthUrl !== null && !isWebUrl(externalAuthUrl)) {
      throw invalidError('externalAuthUrl', 'must be a URL that begins with https: or http:', externalAuthUrl)
    }
    if (jwksEndpoint !== (previous?.jwksEndpoint ?? null)) {
      const objection = jwksEndpoint === null ? undefined : this.#outbound.findObjection(jwksEndpoint)
      if (objection) throw invalidError('jwksEndpoint', objection, jwksEndpoint)
      next.fetchedKeys = null
    }
    if (certPem !== (previous?.certPem ?? null)) {
      Object.assign(next, certPem === null ? NO_CERTIFICATE_FIELDS : readCertificateFields(certPem))
    }
  }

  async computeFields(_context: ReadContext, rows: readonly ComputedInput[]): Promise<Record<string, unknown>[]> {
    return rows.map(({ id }) => ({ keyStatus: this.#describeKeys(id) }))
  }

  #describeKeys(id: string): object {
    const signer = this.#signers.get(id)
    const { fetchedAt = signer?.fetchedKeys?.fetchedAt, failure } = this.#keyRefresher.getStatus(id)
    return {
      keyIds: [...(signer?.keys.keys() ?? [])],
      fetchedAt: fetchedAt === undefined ? null : toIsoTime(fetchedAt),
      failure: failure?.message ?? null,
      failedSince: failure ? toIsoTime(failure.since) : null,
    }
  }
}

function readCertificateFields(pem: string): SignerCertificateFields {
  const certificate = parseSignerCertificate(pem)
  const key = readPublicKey(certificate)
  if (!key || listAlgorithms(key).length === 0) {
    throw invalidError('certPem', 'must have an RSA key of 2048 to 8192 bits, or one on P-256, P-384, P-521 or Ed25519')
  }
  const [notBefore, notAfter] = [readNotBefore(certificate), readNotAfter(certificate)]
  if (!(notBefore <= notAfter)) throw invalidError('certPem', 'must have valid dates')
  return {
    certPem: toCertificatePem(certificate),
    commonName: readCertificateNames(certificate).commonName ?? '',
    fingerprint: computeFingerprint(certificate),
    notBefore,
    notAfter,
  }
}

function parseSignerCertificate(pem: string): X509Certificate {
  const block = parseSinglePemBlock(pem.trim())
  if (block?.label !== 'CERTIFICATE') throw errors.INVALID_CERT_PEM()
  try {
    return new X509Certificate(block.bytes)
  } catch (error) {
    throw errors.INVALID_CERT_PEM(undefined, { cause: error })
  }
}

function isWebUrl(text: string): boolean {
  return URL.canParse(text) && ['https:', 'http:'].includes(new URL(text).protocol)
}
