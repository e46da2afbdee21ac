// Stores the intermediates of operators that clients present, at each handshake: a client that resumes its session comes without them, and may
// sign in only then.

import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Clock } from '../../foundation/clock.ts'
import { MAX_HANDSHAKE_CHECKS, SignatureBudget } from '../../pki/chains.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import type { ClientTrustStore } from './client-trust.ts'
import type { PresentedIssuers } from './presented-issuers.ts'

interface ResumableClientsParts {
  readonly auth: { readonly clientTrust: ClientTrustStore; readonly presentedIssuers: PresentedIssuers }
  readonly clock: Clock
  readonly aggregatedLog: AggregatedLog
}

/** Stores the intermediates of a client that leads over them to an authority of an operator. Never throws. */
export function storeIntermediates(
  { auth, clock, aggregatedLog }: ResumableClientsParts,
  peer: PeerCertificates,
): void {
  const { clientTrust, presentedIssuers } = auth
  if (!clientTrust.hasRegistered || peer.isResumed || peer.isPresentedAlone) return
  try {
    const leaf = peer.readOwn()
    const now = clock.now()
    if (!leaf || clientTrust.isOwnClient(leaf, now)) return
    const checks = new SignatureBudget(MAX_HANDSHAKE_CHECKS)
    // To read the others costs more, and most clients have the same ones.
    if (clientTrust.isVouchedByOperator([leaf, ...presentedIssuers.findAbove(leaf)], now, checks)) return
    const path = peer.readAll()
    if (clientTrust.isVouchedByOperator(path, now, checks)) presentedIssuers.addIntermediates(path.slice(1))
  } catch (error) {
    aggregatedLog.warn('', { err: error }, 'the certificates of a client could not be read')
  }
}
