// The time and the memory that it takes to adopt a network of OpenZiti's controller.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { plainEnvironment } from '../controller/controller-process.ts'
import { readLauncherSettings } from '../controller/launcher-settings.ts'
import { cpuMicroseconds, peakBytes } from '../controller/process-figures.ts'
import { writeFormerNetwork } from '../former-network/former-network.ts'
import type { Measurement } from '../measurement.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact } from '../report/results.ts'

const BINARY = new URL('../../bin/run.js', import.meta.url).pathname
// A process has no figures any more once it has ended.
const LOOK_MS = 20
const BYTES_A_MEGABYTE = 1_000_000

interface Figures {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly peakMegabytes: number
}

export function adoptionMeasurements(model: Model): readonly Measurement[] {
  const name = `adopt ${model.identities.toLocaleString('en')} identities`
  return [
    {
      section: 'adoption',
      name,
      needs: [],
      async measure(bench) {
        const directory = bench.makeDirectory()
        bench.progress.say(`${name}: writing the former network`)
        const configuration = writeFormerNetwork(directory, model)
        bench.progress.say(name)
        const { seconds, cpuSeconds, peakMegabytes } = await adopt(bench, configuration, join(directory, 'data'))
        rmSync(directory, { recursive: true })
        return [
          fact(name, seconds, 's', bounds.adoptionSeconds),
          fact(`${name}: CPU`, cpuSeconds, 's', null),
          fact(`${name}: most resident memory`, peakMegabytes, 'MB', bounds.adoptionMegabytes),
        ]
      },
    },
  ]
}

async function adopt({ profile }: Bench, configuration: string, directory: string): Promise<Figures> {
  const launcher = readLauncherSettings()
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const args = [BINARY, 'adopt', '--from', configuration, '--data-dir', directory, '--yes']
  const begun = performance.now()
  const child = spawn(process.execPath, [...launcher.nodeOptions, ...profiling, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...plainEnvironment(), ...launcher.environment },
  })
  let complaints = ''
  child.stderr.on('data', (chunk) => {
    complaints += chunk
  })
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  let [cpu, peak] = [0, 0]
  while (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    // One that has just ended has no memory, and its times are not below the last ones.
    peak = Math.max(peak, peakBytes(child.pid))
    cpu = Math.max(cpu, cpuMicroseconds(child.pid))
    await wait(LOOK_MS)
  }
  const code = await ended
  if (code !== 0) throw new Error(`adopt ended with ${code}: ${complaints}`)
  const seconds = (performance.now() - begun) / 1000
  return { seconds, cpuSeconds: cpu / 1_000_000, peakMegabytes: peak / BYTES_A_MEGABYTE }
}

function fact(name: string, value: number, unit: Fact['unit'], atMost: number | null): Fact {
  return { kind: 'fact', section: 'adoption', name, value, unit, atMost }
}
