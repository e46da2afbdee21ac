// Checks the log that this controller shares with others, and tells which of its rows were replaced by those of the log.
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { Cluster } from '../../storage/cluster/cluster.ts'
import { describeRebuild, listRebuilds } from '../../storage/cluster/rebuild.ts'
import type { Diagnosis } from './diagnosis.ts'

const CHECK = 'log of the cluster'

/** Reads the log since its newest snapshot. */
export async function checkClusterRows(directory: string, cluster: Cluster): Promise<Diagnosis[]> {
  const rebuilds = listRebuilds(directory).map((rebuild): Diagnosis => {
    const { folder, isRestore, lostRecords } = rebuild
    const task = isRestore ? 'repeat what is newer than the backup and still wanted' : 'repeat what is missing'
    const repeat = lostRecords.count > 0 ? `${task}; its audit is that of controller.db there; then ` : ''
    return {
      ...{ check: CHECK, subject: 'rebuild' },
      message: describeRebuild(rebuild),
      remedy: `${repeat}delete it: rm -r ${quoteShellWord(folder)}`,
    }
  })
  const damage = await cluster.findDamage()
  if (damage === undefined) return rebuilds
  const remedy =
    'restore the database of the log; or let a controller begin another one: controller cluster leave --database-lost, and then controller cluster init with an empty database'
  return [{ check: CHECK, subject: 'log', message: damage, remedy }, ...rebuilds]
}
