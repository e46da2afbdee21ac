// Sums up a CPU profile as V8 writes it: which functions most of the busy time was spent in.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface CpuProfile {
  /** Microseconds of the clock that the system started with, as all times here. */
  readonly startTime: number
  readonly endTime: number
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[]
}

const ROOT = new URL('../../', import.meta.url).href
const SOURCE_COMMENT = /^\/\/ (\S+\.[cm]?[jt]s)$/
// Waiting is not work.
const IDLE = '(idle)'

/** The part of a profile that lies in a span of time. */
export function within(profile: CpuProfile, { from, to }: { readonly from: number; readonly to: number }): CpuProfile {
  const { samples, timeDeltas, startTime } = profile
  let at = startTime
  const ends = timeDeltas.map((delta) => {
    at += delta
    return at
  })
  const first = ends.findIndex((end) => end >= from)
  const next = ends.findIndex((end) => end > to)
  const [begin, end] = [first === -1 ? ends.length : first, next === -1 ? ends.length : next]
  return {
    ...profile,
    startTime: ends[begin - 1] ?? startTime,
    endTime: ends[end - 1] ?? startTime,
    samples: samples.slice(begin, end),
    timeDeltas: timeDeltas.slice(begin, end),
  }
}

/** One line for each of the functions that took most time in themselves, with its share of all that was not waiting. */
export function costliest({ nodes, samples, timeDeltas }: CpuProfile, most: number): string[] {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, described(callFrame)]))
  const times = new Map<string, number>()
  samples.forEach((id, at) => {
    const name = names.get(id) ?? ''
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[at] ?? 0))
  })
  times.delete(IDLE)
  const busy = [...times.values()].reduce((sum, time) => sum + time, 0)
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([name, time]) => `${((100 * time) / busy).toFixed(1).padStart(6)} %  ${name}`)
}

function described({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  const name = functionName || '(anonymous)'
  if (!url.startsWith(ROOT)) return url === '' ? name : `${name}  ${url}:${lineNumber + 1}`
  const source = findSource(url, lineNumber)
  return source ? `${name}  ${source}` : `${name}  ${url.replace(ROOT, '')}:${lineNumber + 1}`
}

const linesByUrl = new Map<string, readonly string[]>()

/** The source of a line of what was built, by the comment that the build puts before what it takes from each file. */
function findSource(url: string, lineNumber: number): string | undefined {
  const file = fileURLToPath(url)
  const lines = linesByUrl.get(url) ?? (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [])
  linesByUrl.set(url, lines)
  const comment = lines.slice(0, lineNumber + 1).findLast((line) => SOURCE_COMMENT.test(line))
  return comment?.replace(SOURCE_COMMENT, '$1')
}
