// Proof by the client certificate of the TLS connection.
import type { X509Certificate } from 'node:crypto'
import type { Context } from '../context.ts'
import { fingerprint256, isWithinDates } from '../pki/certificates.ts'
import { buildChain, isSelfSigned } from '../pki/chains.ts'
import type { Credentials, Proof } from './authenticate.ts'

/**
 * The first certificate is the one whose key the handshake has proven; all others are only material for its chain. It
 * must lead to this controller's own authorities, and be known.
 */
export async function certificateMethod(context: Context, { certificates }: Credentials): Promise<Proof | undefined> {
  const [leaf, ...others] = certificates
  if (!leaf) return undefined
  const trust = trustOf(context, leaf, others)
  if (!trust) return undefined
  const row = await context.db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'isIssuedByNetwork'])
    .where('fingerprint256', '=', fingerprint256(leaf))
    .executeTakeFirst()
  if (!row) return undefined
  const now = context.clock.now()
  return {
    identityId: row.identityId,
    authenticatorId: row.id,
    isCertExtendable: row.isIssuedByNetwork === 1,
    improperClientCertChain: trust === 'improper',
    isAdmitted: ({ primary: { cert } }) => cert.allowed && (cert.allowExpiredCerts || isWithinDates(leaf, now)),
  }
}

/** `proper`: what was sent leads to a root. `improper`: it does only with an intermediate of ours taken as trusted. */
function trustOf(
  context: Context,
  leaf: X509Certificate,
  others: readonly X509Certificate[],
): 'proper' | 'improper' | undefined {
  const { bundle } = context.controller.authority
  const options = { now: context.clock.now(), ignoreLeafDates: true }
  if (buildChain(leaf, others, bundle.filter(isSelfSigned), options)) return 'proper'
  return buildChain(leaf, others, bundle, options) ? 'improper' : undefined
}
