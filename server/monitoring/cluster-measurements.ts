// The measurements of a controller among several: its contact with the log, its turns, and what it does for all.
import type { Cluster } from '../../src/storage/cluster/cluster.ts'
import { dutyNames } from '../../src/storage/cluster/duty.ts'
import type { Store } from '../../src/storage/store.ts'
import type { Measurement } from './measurement.ts'

/** None of a controller that is alone. */
export function listClusterMeasurements(cluster: Cluster | undefined, store: Store): readonly Measurement[] {
  if (!cluster) return []
  const { commitLog, lease, nodes } = cluster
  const measure = (name: string, help: string, read: () => number): Measurement => ({
    name: `cluster_${name}`,
    kind: name.endsWith('_total') ? 'counter' : 'gauge',
    help,
    read: () => [{ value: read() }],
  })
  return [
    measure('log_position', 'The commit up to which this controller has followed the log.', () => store.position),
    measure('log_behind', 'How many commits this controller lacked at its last contact.', () => nodes.behind),
    measure('contact_age_seconds', 'How long ago the last contact with the log began.', () => lease.silentMs / 1_000),
    measure('lease_held', 'Whether this controller may grant rights: 1, or 0.', () => (lease.isHeld ? 1 : 0)),
    measure(
      'refused_total',
      'Requests that were refused because this controller was not in contact.',
      () => lease.refused,
    ),
    measure('turns_total', 'Turns to commit that this controller has had.', () => commitLog.stats.turns),
    measure(
      'turn_wait_seconds_total',
      'How long this controller waited for its turns, with the lock that others held and the way to the database.',
      () => commitLog.stats.waitedMs / 1_000,
    ),
    measure(
      'followed_commits_total',
      'Commits of other controllers that were applied here.',
      () => store.stats().followedCommits,
    ),
    measure(
      'catch_ups_total',
      'How many times commits of others were applied; each may be several.',
      () => store.stats().catchUps,
    ),
    measure('nodes_live', 'The controllers that were in contact within the lease.', () => nodes.liveCount),
    measure('draining', 'Whether this controller drains: 1, or 0.', () => (nodes.isDraining ? 1 : 0)),
    {
      name: 'cluster_duty_held',
      kind: 'gauge',
      help: 'Whether this controller has a duty of all: 1, or 0.',
      labels: ['duty'],
      read() {
        const own = nodes.listDuties()
        return dutyNames.map((duty) => ({ labels: { duty }, value: own.includes(duty) ? 1 : 0 }))
      },
    },
  ]
}
