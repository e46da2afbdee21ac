// `npm run bench`: measures what was asked for, one thing after the other, and prints each result when it is known.
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem, type } from 'node:os'
import { version } from '../src/foundation/version.ts'
import { Bench } from './bench.ts'
import { canReadProcesses, machineMicroseconds, ownMicroseconds } from './controller/process-figures.ts'
import { storageOf } from './controller/storage.ts'
import type { Measurement } from './measurement.ts'
import { type Model, models } from './model/sizes.ts'
import { NotBuiltYet } from './not-built-yet.ts'
import { type Options, readOptions, UsageError, usage } from './options.ts'
import { comparisonLines } from './report/comparison.ts'
import { Printer } from './report/printer.ts'
import { Progress } from './report/progress.ts'
import { failUnmeasured, isMet, type Report, type Result } from './report/results.ts'
import { mediansOf } from './report/statistics.ts'
import { adoptionMeasurements } from './scenarios/adoption.ts'
import { clusterMeasurements } from './scenarios/cluster.ts'
import { clusterSoakMeasurement } from './scenarios/cluster-soak.ts'
import { growthMeasurements } from './scenarios/growth.ts'
import { routerModelMeasurements } from './scenarios/router-model.ts'
import { routerMeasurements } from './scenarios/routers.ts'
import { soakMeasurement } from './scenarios/soak.ts'
import { startMeasurements } from './scenarios/start.ts'
import { stormMeasurements } from './scenarios/storm.ts'
import { togetherMeasurements } from './scenarios/together.ts'
import { writeMeasurements } from './scenarios/writes.ts'
import { requestMeasurements } from './workloads/measurements.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130
const BYTES_A_MEGABYTE = 1_000_000
// From so many on that others keep busy, a run says so.
const BUSY_CORES = 0.2

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args)
    if (options === undefined) {
      process.stdout.write(usage)
      return 0
    }
    return await run(options)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n`)
    return EXIT_USAGE
  }
}

async function run(options: Options): Promise<number> {
  const { soakMinutes, isClusterSoak } = options
  const measureSoak = isClusterSoak ? clusterSoakMeasurement : soakMeasurement
  const measurements =
    soakMinutes === undefined ? selectMeasurements(models[options.model], options.only) : [measureSoak(soakMinutes)]
  if (options.isList) {
    for (const { section, name } of measurements) process.stdout.write(`${section}: ${name}\n`)
    return 0
  }
  if (measurements.length === 0) throw new UsageError('nothing has that in its name; --list shows what there is')
  if (!canReadProcesses) throw new UsageError('CPU times are read from /proc, which this system does not have')
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true })
  const others = watchOthers()
  const results = await measureAll(options, measurements)
  const report = { ...about(options), othersCores: others(), results }
  if (report.othersCores >= BUSY_CORES) process.stdout.write(`\n${busyLine(report.othersCores)}\n`)
  if (options.json) writeFileSync(options.json, `${JSON.stringify(withVerdicts(report), null, 2)}\n`)
  if (options.compare) process.stdout.write(`${comparisonLines(report, options.compare).join('\n')}\n`)
  const exceeding = report.results.filter((result) => isMet(result) === false)
  if (options.isCheck && exceeding.length > 0) process.stdout.write(`\n${exceedingLines(exceeding).join('\n')}\n`)
  const hasFailed = report.results.some(({ kind }) => kind === 'failed')
  return hasFailed || (options.isCheck && exceeding.length > 0) ? EXIT_FAILED : 0
}

function selectMeasurements(model: Model, only: readonly string[]): Measurement[] {
  const all = [
    ...requestMeasurements,
    ...startMeasurements(model),
    ...writeMeasurements,
    ...togetherMeasurements(model),
    ...growthMeasurements(model),
    ...adoptionMeasurements(model),
    ...routerMeasurements(model),
    ...routerModelMeasurements(model),
    ...stormMeasurements(model),
    ...clusterMeasurements(model),
  ]
  const needles = only.map((text) => text.toLowerCase())
  const isWanted = ({ section, name }: Measurement) =>
    needles.some((text) => `${section}: ${name}`.toLowerCase().includes(text))
  return needles.length === 0 ? all : all.filter(isWanted)
}

async function measureAll(options: Options, measurements: readonly Measurement[]): Promise<Result[]> {
  const progress = new Progress(process.stderr)
  const printer = new Printer(process.stdout)
  const bench = new Bench(options, progress)
  process.once('SIGINT', () => {
    bench.abandon()
    process.exit(EXIT_INTERRUPTED)
  })
  const { version: measured, machine, model, seconds, repeat } = about(options)
  printer.line(`${measured}, ${model} model, ${seconds} s each${repeat > 1 ? `, medians of ${repeat}` : ''}`)
  printer.line(
    `${machine.cores} × ${machine.cpu}, ${machine.system}, Node.js ${machine.node}, data on ${machine.storage}`,
  )
  const results: Result[] = []
  try {
    for (const [at, measurement] of measurements.entries()) {
      progress.say(`${at + 1} of ${measurements.length}: ${measurement.name}`)
      const newResults = await measureRepeatedly(bench, measurement, options.repeat)
      progress.clear()
      for (const result of newResults) printer.result(result)
      results.push(...newResults)
    }
  } finally {
    await bench.close()
  }
  return results
}

async function measureRepeatedly(bench: Bench, measurement: Measurement, repeat: number): Promise<Result[]> {
  const { section, name, needs, isOnce = false } = measurement
  try {
    // A measurement without operations may load no network either.
    const missing = needs.length === 0 ? [] : await (await bench.loaded()).network.api.missing(needs)
    if (missing.length > 0) {
      const why = missing.map(({ method, path }) => `${method} ${path}`).join(', ')
      return [{ kind: 'not-built-yet', section, name, why }]
    }
    const runs: Result[][] = []
    for (let turn = 0; turn < (isOnce ? 1 : repeat); turn++) runs.push(await measurement.measure(bench))
    return mediansOf(runs).map(failUnmeasured)
  } catch (error) {
    const kind = error instanceof NotBuiltYet ? 'not-built-yet' : 'failed'
    return [{ kind, section, name, why: (error as Error).message }]
  }
}

function about({ model, seconds, repeat }: Options): Omit<Report, 'results' | 'othersCores'> {
  const [core] = cpus()
  const machine = {
    system: `${type()} ${release()}`,
    cpu: core?.model ?? 'unknown processor',
    cores: cpus().length,
    memoryMegabytes: Math.round(totalmem() / BYTES_A_MEGABYTE),
    node: process.versions.node,
    storage: storageOf(tmpdir()),
  }
  const { revision } = version
  const at = new Date().toISOString()
  return { format: 1, at, version: `${version.version} (${revision})`, machine, model, seconds, repeat }
}

/** Begins to watch; what it returns says how many cores others kept busy since. All that this run started must have ended. */
function watchOthers(): () => number {
  const [machine, own, begun] = [machineMicroseconds(), ownMicroseconds(), performance.now()]
  return () => {
    const others = machineMicroseconds() - machine - (ownMicroseconds() - own)
    return Math.max(0, others / 1000 / (performance.now() - begun))
  }
}

function exceedingLines(results: readonly Result[]): string[] {
  return [`${results.length} exceed a bound:`, ...results.map(({ section, name }) => `  ${section}: ${name}`)]
}

function busyLine(cores: number): string {
  return `Something else kept ${cores.toFixed(1)} of ${cpus().length} cores busy meanwhile: CPU times are too high, by up to a factor of two.`
}

function withVerdicts(report: Report) {
  return { ...report, results: report.results.map((result) => ({ ...result, isMet: isMet(result) ?? null })) }
}
