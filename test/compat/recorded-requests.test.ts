// Replays recorded requests of a compatible controller's clients and compares status, error code and shape of the responses.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, TestClock, type TestController, testController } from '../world/controller.ts'

const RECORDINGS = process.env.COMPAT_RECORDINGS
const KNOWN_FILE = join(import.meta.dirname, 'known-differences.json')

/** The system's time: the replay computes one-time codes of the moment. */
class SystemTestClock extends TestClock {
  override now(): number {
    return Date.now()
  }

  override monotonic(): number {
    return performance.now()
  }
}

/** Step → what differs, of one run of the replay. */
async function replay(url: string, folder: string): Promise<{ differences: Map<string, string>; alike: number }> {
  const recording = join(folder, 'recording-1.6.5.jsonl')
  const credentials = ['--user', ADMIN.username, '--password', ADMIN.password]
  const arguments_ = [join(folder, 'walk.py'), 'compare', '--base', url, ...credentials, '--with', recording]
  // The exit status says that some steps differ, which is what this test finds out for itself.
  const { stdout } = await promisify(execFile)('python3', arguments_, { maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: { stdout?: string }) => {
      if (!error.stdout) throw error
      return { stdout: error.stdout }
    },
  )
  const steps = recordedSteps(recording)
  const lines = [...stdout.matchAll(/^(?:DIFF|LOST) {2}(.+)$/gm)].map(([, line = '']) => line)
  const differences = new Map(
    lines.map((line) => {
      const step = steps.find((name) => line.startsWith(`${name}: `)) ?? line
      return [step, line.slice(step.length + 2)]
    }),
  )
  const [, alike = '0'] = /^(\d+) alike, \d+ differ, \d+ not reached$/m.exec(stdout) ?? []
  return { differences, alike: Number(alike) }
}

/** The names of the steps, the longest first: one may begin another, and both may hold a colon. */
function recordedSteps(recording: string): string[] {
  const lines = readFileSync(recording, 'utf8').trim().split('\n')
  return lines.map((line) => (JSON.parse(line) as { step: string }).step).sort((a, b) => b.length - a.length)
}

if (!RECORDINGS)
  process.stderr.write('the recorded requests are not replayed: COMPAT_RECORDINGS names no folder of recordings\n')

describe.skipIf(!RECORDINGS)('the recorded requests', () => {
  /** Reason → the steps that differ for it. */
  const knownDifferences = JSON.parse(readFileSync(KNOWN_FILE, 'utf8')) as Record<string, readonly string[]>
  const knownSteps = new Set(Object.values(knownDifferences).flat())
  let test: TestController
  let outcome: Awaited<ReturnType<typeof replay>>

  beforeAll(async () => {
    test = await testController({ clock: new SystemTestClock() })
    const { url } = await test.listen()
    outcome = await replay(url, RECORDINGS ?? '')
  }, 180_000)

  afterAll(() => test.close())

  it('get the recorded status, code and shape, except for the known differences', () => {
    const unknown = [...outcome.differences].filter(([step]) => !knownSteps.has(step))

    expect(unknown).toEqual([])
  })

  it('differ in every step that the list names, so that the list only shrinks', () => {
    const repaired = [...knownSteps].filter((step) => !outcome.differences.has(step))

    expect(repaired).toEqual([])
  })

  it('are replayed completely', () => {
    expect(outcome.alike + outcome.differences.size).toBeGreaterThan(440)
  })
})
