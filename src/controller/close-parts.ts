// Closes the parts of a controller, in the order in which they need each other.
import type { Auth } from '../authentication/auth.ts'
import type { AggregatedLog } from '../foundation/aggregated-log.ts'
import { OpenResources } from '../foundation/open-resources.ts'
import type { Backups } from '../maintenance/backup/backups.ts'
import type { DataIntegrity } from '../maintenance/integrity/data-integrity.ts'
import type { WebhookDeliveries } from '../maintenance/webhooks/webhook-deliveries.ts'
import type { RouterModel } from '../network/router-model/router-model.ts'
import type { SessionSync } from '../network/routers/session-sync.ts'
import type { SharedPresence } from '../network/routers/shared-presence.ts'
import type { Cluster } from '../storage/cluster/cluster.ts'
import type { Store } from '../storage/store.ts'
import type { Contexts } from '../storage/transactions/contexts.ts'

/** The parts of a controller that hold state which is not written yet, or work in the background. */
interface ClosableParts {
  readonly store: Store
  readonly cluster: Cluster | undefined
  readonly contexts: Contexts
  readonly aggregatedLog: AggregatedLog
  readonly auth: Auth
  readonly model: RouterModel
  readonly presence: SharedPresence | undefined
  readonly sessionSync: SessionSync
  readonly backups: Backups
  readonly integrity: DataIntegrity
  readonly webhooks: WebhookDeliveries
}

/** Ends background work, writes what only memory holds, and closes the store last. @throws the first error of a part */
export async function closeParts(parts: ClosableParts): Promise<void> {
  const { store, cluster, contexts, aggregatedLog, auth, model, presence, sessionSync, backups, integrity, webhooks } =
    parts
  const { apiSessions, failedSignIns, machineTokens, signers, signIns } = auth
  const resources = new OpenResources()
  resources.add(() => aggregatedLog.flush({ isFinal: true }))
  resources.add(() => cluster?.close())
  resources.add(() => store.close())
  for (const recorder of [signIns, failedSignIns]) resources.add(() => recorder.flush(contexts, { isFinal: true }))
  for (const uses of [apiSessions, machineTokens]) resources.add(() => uses.flush(contexts.create({ kind: 'system' })))
  resources.add(() => webhooks.flush(contexts.create({ kind: 'system' })))
  resources.add(() => webhooks.close())
  resources.add(() => sessionSync.close())
  resources.add(() => model.close())
  resources.add(() => presence?.close())
  resources.add(() => signers.outbound.close())
  resources.add(() => backups.close())
  resources.add(() => integrity.close())
  resources.add(() => cluster?.stopFollowing())
  const [failure] = await resources.close()
  if (failure !== undefined) throw failure
}
