// The options of `npm run bench`.
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type ModelName, modelNames, models } from './model/sizes.ts'
import type { Report } from './report/results.ts'

export interface Options {
  readonly model: ModelName
  /** The time for which each workload is measured. */
  readonly seconds: number
  readonly repeat: number
  /** Parts of the names of what is measured; everything where there are none. */
  readonly only: readonly string[]
  readonly json: string | undefined
  readonly compare: Report | undefined
  readonly profile: string | undefined
  /** The directory that keeps networks that were loaded once. */
  readonly networks: string | undefined
  /** Whether a bound that is exceeded is a failure. */
  readonly isCheck: boolean
  /** The duration of a load that is measured in place of everything else. */
  readonly soakMinutes: number | undefined
  /** Whether that load is at several controllers of one network. */
  readonly isClusterSoak: boolean
  readonly isList: boolean
}

/** The options were not understood. */
export class UsageError extends Error {}

const DEFAULT_SOAK_MINUTES = '60'

const sizes = modelNames.map((name) => `${name} (${models[name].identities.toLocaleString('en')} identities)`)

export const usage = `Measures the controller. It starts one on a fresh data directory, loads a network and reports what requests cost.

  npm run bench -- [OPTIONS]

  --model NAME      ${sizes.join(', ')}; medium unless said otherwise
  --seconds N       how long each kind of request is measured; 4 unless said otherwise
  --only TEXT       only what has TEXT in its name or its section; can be repeated
  --repeat N        measures everything N times and reports medians
  --json FILE       keeps the figures
  --compare FILE    shows them beside those that an earlier run kept
  --check           exits with 1 if a bound is exceeded
  --soak [MINUTES]  only whether memory grows under a mixed load; ${DEFAULT_SOAK_MINUTES} minutes unless said otherwise;
                    exits with 1 if it grows
  --cluster         with --soak, at three controllers with routers, of which one is killed every ten minutes
  --networks DIR    keeps loaded networks in DIR and uses those that an earlier run has kept there
  --profile DIR     writes a CPU profile of each kind of request, and sums it up; its times count for nothing
  --list            shows what can be measured
  --help            shows this

What bench/README.md says of each figure, and of its limits, is worth reading before one is quoted.
`

const DEFAULT_SECONDS = '4'

/** Undefined where help is wanted. @throws UsageError */
export function readOptions(args: readonly string[]): Options | undefined {
  const values = parse(args)
  if (values.help) return undefined
  const model = modelNames.find((name) => name === values.model)
  if (!model) throw new UsageError(`--model must be one of ${modelNames.join(', ')}`)
  if (values.cluster && values.soak === undefined) throw new UsageError('--cluster requires --soak')
  return {
    model,
    seconds: positive('seconds', values.seconds),
    repeat: Math.ceil(positive('repeat', values.repeat)),
    only: values.only,
    json: values.json,
    compare: values.compare === undefined ? undefined : readReport(values.compare),
    profile: values.profile,
    networks: values.networks,
    isClusterSoak: values.cluster,
    soakMinutes: values.soak === undefined ? undefined : positive('soak', values.soak),
    isCheck: values.check || values.soak !== undefined,
    isList: values.list,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: withSoakMinutes(args),
      options: {
        model: { type: 'string', default: 'medium' },
        seconds: { type: 'string', default: DEFAULT_SECONDS },
        repeat: { type: 'string', default: '1' },
        only: { type: 'string', multiple: true, default: [] },
        json: { type: 'string' },
        compare: { type: 'string' },
        profile: { type: 'string' },
        networks: { type: 'string' },
        soak: { type: 'string' },
        cluster: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** The minutes of a soak may be left out, which `parseArgs` does not know. */
function withSoakMinutes(args: readonly string[]): string[] {
  return args.flatMap((arg, at) => {
    const next = args[at + 1]
    return arg === '--soak' && (next === undefined || next.startsWith('--')) ? [arg, DEFAULT_SOAK_MINUTES] : [arg]
  })
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Number.POSITIVE_INFINITY)) throw new UsageError(`--${name} must be a number above 0`)
  return value
}

function readReport(file: string): Report {
  if (!existsSync(file)) throw new UsageError(`there is no file ${file}`)
  try {
    const report = JSON.parse(readFileSync(file, 'utf8')) as Report
    if (report.format === 1) return report
  } catch {
    // Falls to the one sentence that says what was expected.
  }
  throw new UsageError(`${file} was not written by --json`)
}
