// Measures a workload on a controller that writes down what it does, and sums that up.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Network } from '../model/network.ts'
import { type CpuProfile, costliest, within } from '../report/cpu-profile.ts'
import type { MeasuredWorkload } from './measure.ts'
import type { Workload } from './workload.ts'

const SHOWN = 15

/** The controller is started anew with the profiler; the profile is cut down to the time in which it was measured. */
export async function profiled(
  directory: string,
  { controller }: Network,
  { name }: Workload,
  measure: () => Promise<MeasuredWorkload>,
): Promise<MeasuredWorkload> {
  const file = `${name.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '')}.cpuprofile`
  await controller.stop()
  await controller.start(['--cpu-prof', `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${file}`])
  const measured = await measure()
  await controller.stop()
  await controller.start()
  const path = join(directory, file)
  const profile = within(JSON.parse(readFileSync(path, 'utf8')) as CpuProfile, measured.span)
  writeFileSync(path, JSON.stringify(profile))
  process.stdout.write(`\n${path}: where ${name} spends its time\n${costliest(profile, SHOWN).join('\n')}\n\n`)
  return measured
}
