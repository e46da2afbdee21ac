// The memory of a controller with a network in it, and the time that it takes to start.
import type { Bench, Loaded } from '../bench.ts'
import { bounds } from '../budgets.ts'
import type { Measurement } from '../measurement.ts'
import { openSessions } from '../model/clients.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact } from '../report/results.ts'
import { median } from '../report/statistics.ts'

const BYTES_A_MEGABYTE = 1_000_000

const count = (number: number) => number.toLocaleString('en')

/** They follow the requests, whose memory they read. */
export function startMeasurements({ identities, growth: [, most], apiSessions }: Model): readonly Measurement[] {
  return [
    residentMemory(
      identities,
      `after loading ${count(identities)} identities`,
      ({ loading }) => loading?.residentBytes,
    ),
    residentMemory(identities, 'after the requests', ({ network }) => network.controller.residentBytes),
    start(`${count(identities)} identities`, (bench) => bench.loaded()),
    start(`${count(most)} identities and ${count(apiSessions)} API sessions`, async (bench) => {
      const loaded = await bench.loadedWith(most)
      await openSessions(loaded.network, apiSessions)
      return loaded
    }),
  ]
}

function residentMemory(identities: number, when: string, read: (loaded: Loaded) => number | undefined): Measurement {
  const name = `resident memory ${when}`
  return {
    section: 'start',
    name,
    needs: [],
    isOnce: true,
    async measure(bench) {
      const bytes = read(await bench.loaded())
      if (bytes === undefined) return []
      const atMost = identities <= bounds.fewIdentities ? bounds.residentMegabytes : null
      return [fact(name, bytes / BYTES_A_MEGABYTE, 'MB', atMost)]
    },
  }
}

/** From starting the process to its first response. */
function start(what: string, load: (bench: Bench) => Promise<Loaded>): Measurement {
  const name = `start until the first response, ${what}`
  return {
    section: 'start',
    name,
    needs: [],
    async measure(bench) {
      const { controller, model } = (await load(bench)).network
      const seconds: number[] = []
      const cpuSeconds: number[] = []
      for (let turn = 0; turn < model.starts; turn++) {
        await controller.stop()
        seconds.push((await controller.start()) / 1000)
        cpuSeconds.push(controller.cpuMicroseconds / 1_000_000)
      }
      return [
        fact(name, median(seconds), 's', bounds.startSeconds),
        fact(`${name}: CPU`, median(cpuSeconds), 's', null),
        fact(`${name}: resident memory`, controller.residentBytes / BYTES_A_MEGABYTE, 'MB', null),
      ]
    },
  }
}

function fact(name: string, value: number, unit: Fact['unit'], atMost: number | null): Fact {
  return { kind: 'fact', section: 'start', name, value, unit, atMost }
}
