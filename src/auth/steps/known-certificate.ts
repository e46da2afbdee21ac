// Certificate: whose it is. Only the proven leaf counts, whatever else was sent beside it. Nobody's is no refusal yet: its
// authority may say whose it is.
import type { X509Certificate } from 'node:crypto'
import { fingerprint256 } from '../../pki/certificates.ts'
import type { Step } from '../attempt.ts'
import { credentialOfCertificate } from '../credentials.ts'

export const knownCertificate: Step = async (attempt) => {
  const leaf = attempt.presented.certificates[0] as X509Certificate
  const [row] = await credentialOfCertificate(attempt.context.db, fingerprint256(leaf))
  attempt.authenticator = row && {
    id: row.id,
    identityId: row.identityId,
    passwordHash: null,
    isIssuedByNetwork: row.isIssuedByNetwork === 1,
    isExtendRequested: row.isExtendRequested === 1,
    lastAuthResolvedToRoot: row.lastAuthResolvedToRoot === 1,
  }
}
