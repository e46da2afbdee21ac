// The work that no request asks for: what is done, how often, and by which controllers of a network.

import type { Controller } from '../src/controller/controller.ts'
import { removeEndedRevocations } from '../src/network/router-model/revocations.ts'
import { pruneAudit } from '../src/storage/audit/audit-records.ts'
import { reportClockJumps } from '../src/storage/clock-jumps.ts'

interface Timer {
  /** For the log. */
  readonly name: string
  readonly everyMs: number
  /** Each controller of a network does it for itself, or one does it for all; a second one would only repeat it. */
  readonly doneBy: 'each' | 'one'
  /** It is also done at the start. */
  readonly isDoneAtStart?: boolean
  run(): Promise<unknown>
  /** Ends what goes on between the runs, once another controller does it for all. */
  handOver?(): Promise<unknown>
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
// Other controllers hear of the use of a session long before its end.
const FLUSHES_PER_IDLE_TIME = 4

function listTimers(controller: Controller): Timer[] {
  const {
    aggregatedLog,
    auth,
    backups,
    certificates,
    clock,
    cluster,
    config,
    contexts,
    events,
    log,
    observedWebhooks,
    posture,
    store,
    ticketKeys,
    tokenKeys,
    webhooks,
  } = controller
  const { apiSessions, failedSignIns, machineTokens, signers, signIns } = auth
  const context = contexts.create({ kind: 'system' })
  const flushMs = config['session.activityFlush']
  const retention = config['audit.retention']
  return [
    {
      name: 'revoking sessions whose posture has expired',
      everyMs: SECOND_MS,
      doneBy: 'one',
      run: () => posture.deadlines.revokeExpired(contexts),
    },
    {
      // Besides every request that reads the clock.
      name: 'reporting that the clock jumped',
      everyMs: 5 * SECOND_MS,
      doneBy: 'each',
      run: () => reportClockJumps(log, context, clock),
    },
    {
      name: 'deleting revoked sessions',
      everyMs: SECOND_MS,
      doneBy: 'one',
      run: () => apiSessions.termination.deleteRevoked(context),
    },
    {
      name: 'deleting idle sessions',
      everyMs: 5 * SECOND_MS,
      doneBy: 'one',
      run: () => apiSessions.termination.deleteExpired(context),
    },
    {
      name: 'writing session activity',
      everyMs: cluster ? Math.min(flushMs, config['session.timeout'] / FLUSHES_PER_IDLE_TIME) : flushMs,
      doneBy: 'each',
      run: () => apiSessions.flush(context),
    },
    {
      name: 'writing session activity that other controllers have to know',
      everyMs: SECOND_MS,
      doneBy: 'each',
      run: () => apiSessions.flushUrgent(context),
    },
    {
      name: 'writing when tokens were used',
      everyMs: MINUTE_MS,
      doneBy: 'each',
      run: () => machineTokens.flush(context),
    },
    {
      name: 'recording counted refusals',
      everyMs: 5 * SECOND_MS,
      doneBy: 'each',
      run: () => failedSignIns.flush(contexts),
    },
    { name: 'logging what was counted', everyMs: 5 * SECOND_MS, doneBy: 'each', run: () => aggregatedLog.flush() },
    {
      name: 'keeping streams of events open',
      everyMs: 15 * SECOND_MS,
      doneBy: 'each',
      run: async () => events.beat(),
    },
    {
      name: 'sending events to webhooks',
      everyMs: SECOND_MS,
      doneBy: 'one',
      run: () => webhooks.tick(context),
      handOver: () => webhooks.suspend(context),
    },
    ...(observedWebhooks
      ? [
          {
            name: 'sending to webhooks what this controller observes',
            everyMs: SECOND_MS,
            doneBy: 'each' as const,
            run: () => observedWebhooks.tick(context),
          },
        ]
      : []),
    { name: 'recording counted sign-ins', everyMs: MINUTE_MS, doneBy: 'each', run: () => signIns.flush(contexts) },
    {
      name: 'removing revocations that have ended',
      everyMs: MINUTE_MS,
      doneBy: 'one',
      run: () => removeEndedRevocations(context, { clock, lifetime: apiSessions.lifetime }),
    },
    {
      name: 'checking certificates',
      everyMs: 10 * MINUTE_MS,
      doneBy: 'each',
      run: () => certificates.upkeep.runIfDue(context),
    },
    {
      name: 'renewing the key of tokens',
      everyMs: 10 * MINUTE_MS,
      doneBy: 'one',
      isDoneAtStart: true,
      run: () => tokenKeys.renewDue(context),
    },
    {
      name: 'renewing the key of TLS tickets',
      everyMs: 10 * MINUTE_MS,
      doneBy: 'one',
      isDoneAtStart: true,
      run: () => ticketKeys.renewDue(context),
    },
    {
      name: 'refreshing the keys of external JWT signers',
      everyMs: 5 * SECOND_MS,
      doneBy: 'one',
      run: () => signers.keyRefresher.refreshDue(contexts),
    },
    ...(config['backup.every'] === undefined
      ? []
      : [
          {
            name: 'making the scheduled backup',
            everyMs: MINUTE_MS,
            doneBy: 'each' as const,
            run: () => backups.runIfDue(),
          },
        ]),
    ...(cluster
      ? [
          {
            name: 'making the snapshot of the cluster',
            everyMs: 10 * MINUTE_MS,
            doneBy: 'one' as const,
            run: () => cluster.snapshots.runIfDue(context),
          },
          {
            name: 'comparing the rows with those of other controllers',
            everyMs: MINUTE_MS,
            doneBy: 'each' as const,
            run: () => cluster.comparison.compare(),
          },
        ]
      : []),
    ...(retention === undefined
      ? []
      : [
          {
            name: 'pruning the audit',
            everyMs: 60 * MINUTE_MS,
            doneBy: 'one' as const,
            isDoneAtStart: true,
            run: () => pruneAudit(store, context, retention),
          },
        ]),
  ]
}

/** Starts all timers. Returns what ends them. */
export function startTimers(controller: Controller): () => void {
  const running = new Set<Timer>()
  const { cluster } = controller
  const isOwn = ({ doneBy }: Timer) => doneBy === 'each' || !cluster || cluster.hasTimers
  const runAlone = async (timer: Timer) => {
    // Work that takes longer than its interval is not begun a second time.
    if (running.has(timer) || !isOwn(timer)) return
    running.add(timer)
    await timer.run().catch((error) => controller.log.error({ err: error }, `${timer.name} failed`))
    running.delete(timer)
  }
  const timers = listTimers(controller)
  cluster?.onTimersLost(() => {
    for (const { name, handOver } of timers)
      handOver?.().catch((error) => controller.log.error({ err: error }, `${name} could not be handed over`))
  })
  const intervals = timers.map((timer) => {
    if (timer.isDoneAtStart) void runAlone(timer)
    return setInterval(() => void runAlone(timer), timer.everyMs)
  })
  return () => intervals.forEach(clearInterval)
}
