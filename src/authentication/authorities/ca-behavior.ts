// The rules of authorities that operators bring: their certificate, their claim, and the sessions that they let in.

import type { cas } from '../../definitions/resources/cas.ts'
import { invalidError } from '../../foundation/errors.ts'
import { newToken } from '../../foundation/ids.ts'
import { computeFingerprint, computeFingerprint256 } from '../../pki/certificates.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'
import { readAuthorityCertificate, toNameKey } from './authority-certificates.ts'
import { requireConsistentClaim } from './external-id-claim.ts'
import type { CertificateAuthority } from './registered-authority.ts'

/** The collaborators of the behavior of authorities. */
interface CertificateAuthorityBehaviorParts {
  readonly clientTrust: ClientTrustStore
}

type PreparedAuthority = Pick<CertificateAuthority, 'fingerprint' | 'fingerprint256' | 'subject'>

export class CertificateAuthorityBehavior implements Behavior<typeof cas, PreparedAuthority | undefined> {
  readonly #clientTrust: ClientTrustStore

  constructor({ clientTrust }: CertificateAuthorityBehaviorParts) {
    this.#clientTrust = clientTrust
  }

  /** Reads the certificate of a new authority. @throws COULD_NOT_VALIDATE, CERTIFICATE_IS_NOT_CA */
  async prepareCreate({ clock }: Context, { next }: Draft<typeof cas>): Promise<PreparedAuthority> {
    const certificate = readAuthorityCertificate(next.certPem, clock.now())
    // Its session certificates would become credentials.
    if (this.#clientTrust.isOwnAuthority(certificate))
      throw invalidError('certPem', 'is the certificate of this controller itself')
    return {
      fingerprint: computeFingerprint(certificate),
      fingerprint256: computeFingerprint256(certificate),
      subject: toNameKey(certificate.subject),
    }
  }

  /** @throws COULD_NOT_VALIDATE if an authority has the certificate already, REFERENCED_ENTITY_NOT_FOUND for the claim */
  async check(
    tx: WriteContext,
    next: CertificateAuthority,
    previous: CertificateAuthority | undefined,
    prepared: PreparedAuthority | undefined,
  ): Promise<void> {
    if (next.externalIdClaim) requireConsistentClaim(next.externalIdClaim)
    if (previous || !prepared) return
    Object.assign(next, prepared, { isVerified: false, verificationToken: newToken() })
    const holder = await tx.db
      .selectFrom('cas')
      .select('name')
      .where('fingerprint256', '=', prepared.fingerprint256)
      .executeTakeFirst()
    if (holder) throw invalidError('certPem', `is the certificate of the authority ${holder.name} already`)
  }
}
