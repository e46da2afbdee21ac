// The bench runs through with a network so small that its times say nothing, and reports on everything that it can measure.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

beforeAll(async () => {
  const flags = ['--model', 'tiny', '--seconds', '0.05']
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

  it('says of every request what it cost, beside what a bare server takes', () => {
    const requests = report.results.filter((result) => result.kind === 'requests')

    expect(requests.length).toBeGreaterThan(10)
    for (const { perSecond, p50, p99 } of requests) {
      expect(perSecond).toBeGreaterThan(0)
      expect(p50).toBeGreaterThan(0)
      expect(p99).toBeGreaterThanOrEqual(p50)
    }
  })
})

describe('a run of some things', () => {
  it(
    'measures what has the text in its name, and shows it beside an earlier run',
    async () => {
      const { code, stdout } = await bench(
        ...['--model', 'tiny', '--seconds', '0.05', '--only', 'requests: get version', '--compare', file],
      )

      expect(code).toBe(0)
      expect(stdout).toMatch(/^GET version .*CPU µs/m)
      expect(stdout).not.toContain('GET current-identity')
    },
    1 * MINUTES,
  )

  it('refuses what it does not understand with the reason', async () => {
    const notes = join(home, 'notes.json')
    writeFileSync(notes, '{"format":9}')
    const cases: [string[], RegExp][] = [
      [['--model', 'huge'], /--model must be one of/],
      [['--seconds', 'soon'], /--seconds must be a number above 0/],
      [['--only', 'no such thing'], /--list shows what there is/],
      [['--compare', notes], /was not written by --json/],
      [['--fast'], /--fast/],
    ]

    for (const [args, reason] of cases) {
      const { code, stderr } = await bench(...args)
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(stderr).toMatch(reason)
    }
  })
})
