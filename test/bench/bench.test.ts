// The bench runs through with a network so small that its times say nothing, and reports on everything that it can measure.
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Report, Result } from '../../bench/report/results.ts'
import { cleanEnvironment, type Finished, run } from '../world/binary.ts'

const MAIN = join(import.meta.dirname, '../../dist/bench/main.js')
const MINUTES = 60_000

const home = mkdtempSync(join(tmpdir(), 'bench-test-'))
const file = join(home, 'figures.json')
const env = cleanEnvironment(home)
const bench = (...args: string[]) => run(process.execPath, [MAIN, ...args], env)

let all: Finished
let report: Report
let listed: string[]

// The runs share the networks that the first one loads.
const networks = join(home, 'networks')
const flags = ['--model', 'tiny', '--seconds', '0.05', '--networks', networks]

/** The files below a directory, each with the digest of its content. */
function contentsOf(directory: string): string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((path) => `${path} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`)
    .sort()
}

beforeAll(async () => {
  listed = (await bench(...flags, '--list')).stdout.trim().split('\n')
  all = await bench(...flags, '--json', file)
  report = JSON.parse(readFileSync(file, 'utf8')) as Report
}, 5 * MINUTES)
afterAll(() => rmSync(home, { recursive: true, force: true }))

const named = ({ section, name }: Result) => `${section}: ${name}`

describe('a run of everything', () => {
  it('measures all there is, or says that it is not built yet', () => {
    const failed = report.results.flatMap((result) =>
      result.kind === 'failed' ? [`${named(result)}: ${result.why}`] : [],
    )

    expect(failed).toEqual([])
    expect(all).toMatchObject({ code: 0, stderr: '' })
  })

  it('has results of every measurement', () => {
    const missing = listed.filter((name) => !report.results.some((result) => named(result).startsWith(name)))

    expect(listed.length).toBeGreaterThan(30)
    expect(missing).toEqual([])
  })

  it('prints a line for each of them', () => {
    const silent = report.results.filter(({ name }) => !all.stdout.includes(`\n${name}`))

    expect(silent).toEqual([])
  })

  it('says of every request what it cost, besides what a bare server takes', () => {
    const requests = report.results.filter((result) => result.kind === 'requests')

    expect(requests.length).toBeGreaterThan(10)
    for (const { perSecond, p50, p99 } of requests) {
      expect(perSecond).toBeGreaterThan(0)
      expect(p50).toBeGreaterThan(0)
      expect(p99).toBeGreaterThanOrEqual(p50)
    }
    for (const { name, timesFloor, generatorMicroseconds } of requests.filter(
      ({ name }) => !name.endsWith('loading'),
    )) {
      expect({ name, isMeasured: Number(timesFloor) > 0 && Number(generatorMicroseconds) > 0 }).toEqual({
        name,
        isMeasured: true,
      })
    }
  })

  it('says which build was measured, and on which machine', () => {
    expect(report.version).toMatch(/^v\d/)
    expect(report.machine).toMatchObject({
      cores: expect.any(Number),
      storage: expect.stringMatching(/^(tmpfs|disk)$/),
    })
  })
})

describe('a run of some things', () => {
  it(
    'measures what has the text in its name, and shows it beside an earlier run',
    async () => {
      const { code, stdout } = await bench(...flags, '--only', 'requests: get version', '--compare', file)

      expect(code).toBe(0)
      expect(stdout).toMatch(/^GET version .*CPU µs/m)
      expect(stdout).not.toContain('GET current-identity')
    },
    1 * MINUTES,
  )

  it(
    'fails with --check exactly if a bound is exceeded, and names what exceeds it',
    async () => {
      const figures = join(home, 'checked.json')
      const only = ['--only', 'requests: get version', '--only', 'requests: get current-api-session']

      const { code, stdout } = await bench(...flags, ...only, '--check', '--json', figures)

      const { results } = JSON.parse(readFileSync(figures, 'utf8')) as {
        results: (Result & { isMet: boolean | null })[]
      }
      const exceeding = results.filter(({ isMet }) => isMet === false)
      expect(results.map(({ name }) => name)).toEqual([
        'GET version',
        'GET current-api-session/service-updates',
        'GET current-api-session/service-updates, by access token',
        'GET current-api-session',
      ])
      expect(code).toBe(exceeding.length > 0 ? 1 : 0)
      for (const result of exceeding) expect(stdout).toContain(`\n  ${named(result)}\n`)
    },
    1 * MINUTES,
  )

  it(
    'uses a network that an earlier run has kept, and leaves it as it was',
    async () => {
      const before = contentsOf(networks)

      const { code, stdout } = await bench(...flags, '--only', 'requests: post identities')

      expect(code).toBe(0)
      expect([all.stdout, stdout].map((text) => text.includes('while loading'))).toEqual([true, false])
      expect(stdout).toMatch(/^POST identities with an ott enrollment +\d/m)
      expect(contentsOf(networks)).toEqual(before)
    },
    1 * MINUTES,
  )

  it(
    'reads the memory of the controller under a load that lasts, and fails exactly if it grows',
    async () => {
      const figures = join(home, 'soak.json')
      const { code, stderr } = await bench(...flags, '--soak', '0.02', '--json', figures)

      const { results } = JSON.parse(readFileSync(figures, 'utf8')) as {
        results: (Result & { isMet: boolean | null })[]
      }
      expect({ stderr, failed: results.filter(({ kind }) => kind === 'failed') }).toEqual({ stderr: '', failed: [] })
      expect(results.map(({ name }) => name)).toContain('0.02 minutes of mixed load: heap: growth')
      expect(code).toBe(results.some(({ isMet }) => isMet === false) ? 1 : 0)
    },
    3 * MINUTES,
  )

  it(
    'kills two of three controllers under such a load, and finds no change lost and their rows alike',
    async () => {
      const figures = join(home, 'cluster-soak.json')
      const { stderr } = await bench(...flags, '--soak', '0.05', '--cluster', '--json', figures)

      const { results } = JSON.parse(readFileSync(figures, 'utf8')) as Report
      const kills = results.find(({ name }) => name.endsWith('three controllers: kills'))
      expect({ stderr, failed: results.filter(({ kind }) => kind === 'failed') }).toEqual({ stderr: '', failed: [] })
      expect(kills).toMatchObject({ value: 2 })
    },
    5 * MINUTES,
  )

  it(
    'measures bursts of load also if nothing was measured before them',
    async () => {
      const figures = join(home, 'bursts.json')
      const only = ['--only', 'storm of writes', '--only', 'enrollments at once']

      const { code } = await bench(...flags, ...only, '--json', figures)

      const { results } = JSON.parse(readFileSync(figures, 'utf8')) as Report
      const completed = results.find(({ name }) => name === 'storm of writes: completed')
      expect(code).toBe(0)
      expect(results.map(({ kind }) => kind)).not.toContain('failed')
      expect(completed?.kind === 'fact' && completed.value).toBeGreaterThan(0)
    },
    1 * MINUTES,
  )

  it('lets as many devices come in a storm as the limit of file descriptors allows, and names their number', async () => {
    const limited = ['-c', 'ulimit -n 1200 && exec "$@"', 'sh', process.execPath, MAIN]

    const { stdout } = await run('sh', [...limited, '--model', 'medium', '--list'], env)

    expect(stdout).toContain('storm: 200 devices\n')
  })

  it('refuses what it does not understand with the reason', async () => {
    const notes = join(home, 'notes.json')
    writeFileSync(notes, '{"format":9}')
    const cases: [string[], RegExp][] = [
      [['--model', 'huge'], /--model must be one of/],
      [['--seconds', 'soon'], /--seconds must be a number above 0/],
      [['--only', 'no such thing'], /--list shows what there is/],
      [['--compare', notes], /was not written by --json/],
      [['--soak', 'long'], /--soak must be a number above 0/],
      [['--cluster'], /--cluster requires --soak/],
      [['--fast'], /--fast/],
    ]

    for (const [args, reason] of cases) {
      const { code, stderr } = await bench(...args)
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(stderr).toMatch(reason)
    }
  })
})
