// Renews the certificates of a router over its connection: new ones are stored when it asks, and count when it confirms them.
import { X509Certificate } from 'node:crypto'
import {
  issueRouterCertificates,
  type RouterCertificates,
  type RouterRequests,
} from '../../authentication/enrollment/enroll-router.ts'
import { routers } from '../../definitions/resources/routers.ts'
import type { Instant } from '../../foundation/clock.ts'
import { ControllerError } from '../../foundation/errors.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint } from '../../pki/certificates.ts'
import { isRenewalHeld, isTrialUnderWay } from '../../pki/trial.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { ConnectedRouter } from './connected-routers.ts'

/** The reasons that routers know. */
export type RenewalRefusal = 'MISSING_CLIENT_PEM' | 'INVALID_ROUTER_STATE' | 'INVALID_CLIENT_PEM' | 'VERIFY_ERROR'

/** A renewal that is refused; the router keeps the certificates that it has. */
export class RenewalError extends Error {
  override readonly name = 'RenewalError'
  /** One of the reasons that routers know; undefined if the request itself cannot be served. */
  readonly reason: RenewalRefusal | undefined

  constructor(reason: RenewalRefusal | undefined, message: string) {
    super(message)
    this.reason = reason
  }
}

// Routers repeat a request after 35 seconds; each costs two signatures and a transaction.
const MIN_INTERVAL_MS = 10_000

export class CertificateRenewal {
  readonly #entities: EntityStore
  readonly #authority: Authority
  /** The end of the trial of an adopted network, if there is one. */
  readonly #trialEnds: Instant | undefined
  /** When each connection last asked, by the monotonic clock. */
  readonly #requestTimes = new WeakMap<ConnectedRouter, number>()

  constructor(entities: EntityStore, authority: Authority, trialEnds: Instant | undefined) {
    this.#entities = entities
    this.#authority = authority
    this.#trialEnds = trialEnds
  }

  /**
   * Issues new certificates for a router. Until it confirms that it has received them, both the present client certificate and
   * the new one let it connect.
   * @throws RenewalError if it asks too often, if an adopted network is on trial, or if a request is not one for this router
   */
  async request(context: Context, router: ConnectedRouter, requests: RouterRequests): Promise<RouterCertificates> {
    const now = context.clock.monotonic()
    const last = this.#requestTimes.get(router)
    if (last !== undefined && now - last < MIN_INTERVAL_MS) throw new RenewalError(undefined, 'it asked a moment ago')
    this.#requestTimes.set(router, now)
    const { client, ...issued } = this.#issue(context, router, requests)
    const unverified = {
      unverifiedFingerprint: computeFingerprint(client),
      unverifiedCertPem: new X509Certificate(client.raw).toString(),
    }
    await context.write(async (tx) => {
      const record = await find(tx, routers, router.id)
      if (!record?.isVerified) throw new RenewalError(undefined, 'the router must enroll again')
      if (this.#isHeld(record.certPem, tx.clock.now()))
        throw new RenewalError(undefined, 'certificates are not renewed while the network is on trial')
      // The certificate does not count before the router confirms it, which is the change that the audit shows.
      await this.#entities.update(tx, routers, record, unverified, { audit: 'none' })
    })
    return issued
  }

  /** Routers that are not edge routers have no certificate in their record: only the end of the trial is known then. */
  #isHeld(certPem: string | null, now: Instant): boolean {
    if (certPem === null) return isTrialUnderWay(this.#trialEnds, now)
    return isRenewalHeld(new X509Certificate(certPem), this.#trialEnds, now)
  }

  #issue(context: Context, { id, isEdge }: ConnectedRouter, requests: RouterRequests) {
    try {
      return issueRouterCertificates(this.#authority, context, { id, method: isEdge ? 'erott' : 'trott' }, requests)
    } catch (error) {
      if (!(error instanceof ControllerError)) throw error
      throw new RenewalError(undefined, error.message)
    }
  }

  /**
   * Makes the new certificate that of the router. The former one lets the router connect until it has connected with the new
   * one, because it may not learn that its confirmation was received.
   * @throws RenewalError if `pem` does not begin with the certificate that was issued for the router
   */
  async confirm(context: Context, router: ConnectedRouter, pem: string): Promise<void> {
    if (pem === '') throw new RenewalError('MISSING_CLIENT_PEM', 'the certificate is missing')
    const confirmed = parseConfirmedCertificate(pem)
    await context.write(async (tx) => {
      const record = await find(tx, routers, router.id)
      if (!record || record.unverifiedCertPem === null)
        throw new RenewalError('INVALID_ROUTER_STATE', 'no certificate was issued for the router')
      const { unverifiedCertPem: certPem, unverifiedFingerprint: fingerprint } = record
      if (computeFingerprint(confirmed) !== fingerprint)
        throw new RenewalError('VERIFY_ERROR', 'another certificate was issued for the router')
      router.renewedFingerprint = fingerprint
      await this.#entities.update(tx, routers, record, {
        certPem,
        fingerprint,
        formerFingerprint: record.fingerprint,
        unverifiedCertPem: null,
        unverifiedFingerprint: null,
      })
    })
  }

  /** Notes that a router connected with its new certificate: from now on the former one does not let it connect. */
  async forgetFormer(context: Context, routerId: string): Promise<void> {
    await context.write(async (tx) => {
      const record = await find(tx, routers, routerId)
      if (record && record.formerFingerprint !== null)
        await this.#entities.update(tx, routers, record, { formerFingerprint: null }, { audit: 'none' })
    })
  }
}

/** @throws RenewalError */
function parseConfirmedCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new RenewalError('INVALID_CLIENT_PEM', 'the certificate is malformed')
  }
}
