// This run beside an earlier one.
import type { Report, Result } from './results.ts'

const NAME_WIDTH = 74
const WIDTH = 10

/** Lines that show what changed; results that only one of the runs has are skipped. */
export function comparisonLines(now: Report, then: Report): string[] {
  const earlier = new Map(then.results.map((result) => [keyOf(result), result]))
  const lines = now.results.flatMap((result) => {
    const before = earlier.get(keyOf(result))
    return before
      ? figuresOf(result).flatMap(([what, value]) => line(result.name, what, figureOf(before, what), value))
      : []
  })
  return ['', head(then), ...lines, ...warnings(now, then)]
}

const keyOf = ({ section, kind, name }: Result) => [section, kind, name].join('\n')

/** The figures by which results of two runs are compared. */
function figuresOf(result: Result): [string, number][] {
  switch (result.kind) {
    case 'requests':
      return [
        ['CPU µs', result.cpuMicroseconds],
        ...(result.timesFloor === null ? [] : [['× bare', result.timesFloor] satisfies [string, number]]),
      ]
    case 'growth':
      return [['times', result.times]]
    case 'fact':
      return [[result.unit, result.value]]
    default:
      return []
  }
}

function figureOf(result: Result, what: string): number | undefined {
  return figuresOf(result).find(([name]) => name === what)?.[1]
}

function line(name: string, what: string, before: number | undefined, value: number): string[] {
  if (before === undefined) return []
  const change = 100 * (value / before - 1)
  const cells = [what, formatValue(before), formatValue(value), `${change >= 0 ? '+' : ''}${change.toFixed(0)} %`]
  return [name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(WIDTH)).join('')]
}

function head({ at, model, seconds }: Report): string {
  const title = `Beside the run of ${at} (${model}, ${seconds} s)`.padEnd(NAME_WIDTH)
  return title + ['', 'then', 'now', 'change'].map((cell) => cell.padStart(WIDTH)).join('')
}

function warnings(now: Report, then: Report): string[] {
  const isSame = now.machine.cpu === then.machine.cpu && now.machine.node === then.machine.node
  return [
    ...(now.model === then.model ? [] : [`The models differ: ${then.model} then, ${now.model} now.`]),
    ...(isSame ? [] : ['The machine or its Node.js is another: only the ratios to the bare server compare.']),
  ]
}

function formatValue(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
