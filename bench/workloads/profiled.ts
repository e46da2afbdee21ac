// Measures a workload on a controller that writes down what it does, and sums that up.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Network } from '../model/network.ts'
import { costliest } from '../report/cpu-profile.ts'
import type { RequestFigures } from '../report/results.ts'
import type { Workload } from './workload.ts'

const SHOWN = 15

/** The controller is started anew with the profiler, so that the profile holds its start and this workload, not the loading. */
export async function profiled(
  directory: string,
  { controller }: Network,
  { name }: Workload,
  measure: () => Promise<RequestFigures>,
): Promise<RequestFigures> {
  const file = `${name.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '')}.cpuprofile`
  await controller.stop()
  await controller.start(['--cpu-prof', `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${file}`])
  const figures = await measure()
  await controller.stop()
  await controller.start()
  const profile = join(directory, file)
  const lines = costliest(readFileSync(profile, 'utf8'), SHOWN)
  process.stdout.write(`\n${profile}: where ${name} spends its time\n${lines.join('\n')}\n\n`)
  return figures
}
