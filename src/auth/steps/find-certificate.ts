// Certificate: finds its authenticator. Only the proven leaf counts. A leaf without an authenticator is not refused yet,
// because its authority may identify the holder.
import type { X509Certificate } from 'node:crypto'
import { computeFingerprint256 } from '../../pki/certificates.ts'
import { findByCertificate } from '../credentials.ts'
import type { Step } from '../sign-in-attempt.ts'

export const findCertificate: Step = async (attempt) => {
  const leaf = attempt.credentials.certificates[0] as X509Certificate
  const fingerprint256 = computeFingerprint256(leaf)
  const [row] = await findByCertificate(attempt.context.db, fingerprint256)
  attempt.authenticator = row && {
    id: row.id,
    identityId: row.identityId,
    passwordHash: null,
    fingerprint256,
    caId: row.caId,
    isIssuedByNetwork: row.isIssuedByNetwork === 1,
    isExtendRequested: row.isExtendRequested === 1,
    lastAuthResolvedToRoot: row.lastAuthResolvedToRoot === 1,
  }
}
