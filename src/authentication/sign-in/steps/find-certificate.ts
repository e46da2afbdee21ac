// Certificate: finds its authenticator. Only the proven leaf counts. A leaf without an authenticator is not refused yet,
// because its authority may identify the holder.
import { computeFingerprint256, type EncodedCertificate } from '../../../pki/certificates.ts'
import { findByCertificate } from '../../credentials/credentials.ts'
import type { Step } from '../sign-in-attempt.ts'

export const findCertificate: Step = async (attempt) => {
  const fingerprint256 = computeFingerprint256(attempt.credentials.peer.own as EncodedCertificate)
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
