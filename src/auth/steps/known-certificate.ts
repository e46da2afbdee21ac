// Certificate: whose it is. Only the proven leaf counts, whatever else was sent beside it.
import type { X509Certificate } from 'node:crypto'
import { fingerprint256 } from '../../pki/certificates.ts'
import { Refusal, type Step } from '../attempt.ts'
import { credentialOfCertificate } from '../credentials.ts'

export const knownCertificate: Step = async (attempt) => {
  const leaf = attempt.presented.certificates[0] as X509Certificate
  const [row] = await credentialOfCertificate(attempt.context.db, fingerprint256(leaf))
  if (!row) throw new Refusal('UNKNOWN_CREDENTIAL', 'the certificate belongs to no authenticator')
  attempt.authenticator = {
    id: row.id,
    identityId: row.identityId,
    passwordHash: null,
    isIssuedByNetwork: row.isIssuedByNetwork === 1,
    isExtendRequested: row.isExtendRequested === 1,
    lastAuthResolvedToRoot: row.lastAuthResolvedToRoot === 1,
  }
}
