// What a controller with a network in it needs before it responses, and keeps in memory.
import type { Bench, Loaded } from '../bench.ts'
import { bounds } from '../budgets.ts'
import type { Measurement } from '../measurement.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact } from '../report/results.ts'
import { median } from '../report/statistics.ts'

const STARTS = 3
const BYTES_A_MEGABYTE = 1_000_000

export function startMeasurements({ identities, growth: [, most] }: Model): readonly Measurement[] {
  return [
    residentMemory(identities),
    start(identities, (bench) => bench.loaded()),
    ...(most > identities ? [start(most, (bench) => bench.loadedWith(most))] : []),
  ]
}

function residentMemory(identities: number): Measurement {
  const name = `resident memory after loading ${identities.toLocaleString('en')} identities`
  return {
    section: 'start',
    name,
    needs: [],
    isOnce: true,
    async measure(bench) {
      const { loading } = await bench.loaded()
      const atMost = identities <= bounds.fewIdentities ? bounds.residentMegabytes : null
      return [fact(name, loading.residentBytes / BYTES_A_MEGABYTE, 'MB', atMost)]
    },
  }
}

/** From starting the process to its first response. */
function start(identities: number, load: (bench: Bench) => Promise<Loaded>): Measurement {
  const name = `start until the first response, ${identities.toLocaleString('en')} identities`
  return {
    section: 'start',
    name,
    needs: [],
    async measure(bench) {
      const { controller } = (await load(bench)).network
      const seconds: number[] = []
      const cpuSeconds: number[] = []
      for (let turn = 0; turn < STARTS; turn++) {
        await controller.stop()
        seconds.push((await controller.start()) / 1000)
        cpuSeconds.push(controller.cpuMicroseconds / 1_000_000)
      }
      const isFew = identities <= bounds.fewIdentities
      const atMost = isFew ? bounds.startSeconds : bounds.startSecondsWithManyIdentities
      return [fact(name, median(seconds), 's', atMost), fact(`${name}: CPU`, median(cpuSeconds), 's', null)]
    },
  }
}

function fact(name: string, value: number, unit: Fact['unit'], atMost: number | null): Fact {
  return { kind: 'fact', section: 'start', name, value, unit, atMost }
}
