// Results as lines of a table, one at a time, because a run takes minutes.
import {
  type Fact,
  type GrowthFigures,
  isMet,
  isNearFloor,
  isWithinBudget,
  type RequestFigures,
  type Result,
  type Section,
} from './results.ts'

interface Column<R> {
  readonly title: string
  readonly width: number
  text(result: R): string
}

const NAME_WIDTHS: Readonly<Record<Section, number>> = {
  requests: 48,
  start: 74,
  writes: 74,
  together: 74,
  growth: 48,
  adoption: 74,
  routers: 98,
  storm: 74,
  cluster: 74,
  soak: 74,
}

const titles: Readonly<Record<Section, string>> = {
  requests: 'One kind of request at a time',
  writes: 'Writes, and the share of their commits',
  together: 'Much at once, and what others notice',
  growth: 'The same in a small and in a large network',
  adoption: "Adopting a network of OpenZiti's controller",
  start: 'Memory and starting',
  routers: 'Many routers',
  storm: 'All clients at once',
  cluster: 'Three controllers of one network',
  soak: 'A mixed load for a long time',
}

const requestColumns: readonly Column<RequestFigures>[] = [
  { title: 'per s', width: 8, text: ({ perSecond }) => rounded(perSecond) },
  { title: 'p50 ms', width: 8, text: ({ p50 }) => fine(p50) },
  { title: 'p95', width: 8, text: ({ p95 }) => fine(p95) },
  { title: 'p99', width: 8, text: ({ p99 }) => fine(p99) },
  { title: 'CPU µs', width: 8, text: ({ cpuMicroseconds }) => rounded(cpuMicroseconds) },
  {
    title: 'at most',
    width: 9,
    text: ({ atMostMicroseconds }) => rounded(atMostMicroseconds),
  },
  { title: '', width: 6, text: (figures) => toWord(isWithinBudget(figures)) },
  { title: '× bare', width: 8, text: ({ timesFloor }) => fine(timesFloor) },
  {
    title: 'at most',
    width: 9,
    text: ({ atMostTimesFloor }) => (atMostTimesFloor === null ? '–' : `${atMostTimesFloor}`),
  },
  { title: '', width: 6, text: (figures) => toWord(isNearFloor(figures)) },
  { title: 'load µs', width: 9, text: ({ generatorMicroseconds }) => rounded(generatorMicroseconds) },
  { title: 'cores', width: 7, text: ({ generatorCores }) => fine(generatorCores) },
]

const factColumns: readonly Column<Fact>[] = [
  { title: '', width: 12, text: ({ value, unit }) => `${amount(value)} ${unit}` },
  { title: 'at most', width: 12, text: ({ atMost, unit }) => (atMost === null ? '–' : `${atMost} ${unit}`) },
  { title: '', width: 6, text: verdict },
]

const growthColumns: readonly Column<GrowthFigures>[] = [
  { title: 'small µs', width: 9, text: ({ cpuMicroseconds: [few] }) => rounded(few) },
  { title: 'large µs', width: 9, text: ({ cpuMicroseconds: [, many] }) => rounded(many) },
  { title: 'times', width: 7, text: ({ times }) => fine(times) },
  { title: 'at most', width: 9, text: ({ atMostTimes }) => String(atMostTimes) },
  { title: '', width: 6, text: verdict },
]

const columnsOf: Readonly<Record<Section, readonly { title: string; width: number }[]>> = {
  requests: requestColumns,
  together: factColumns,
  adoption: factColumns,
  growth: growthColumns,
  start: factColumns,
  writes: factColumns,
  routers: factColumns,
  storm: factColumns,
  cluster: factColumns,
  soak: factColumns,
}

/** The title of a section and the heads of its columns. */
export function headLines(section: Section): string[] {
  const heads = columnsOf[section].map(({ title, width }) => title.padStart(width))
  return ['', (titles[section].padEnd(NAME_WIDTHS[section]) + heads.join('')).trimEnd()]
}

export function resultLine(result: Result): string {
  const name = result.name.padEnd(NAME_WIDTHS[result.section])
  switch (result.kind) {
    case 'requests':
      return name + cells(requestColumns, result)
    case 'growth':
      return name + cells(growthColumns, result)
    case 'fact':
      return name + cells(factColumns, result)
    case 'not-built-yet':
      return `${name}  not built yet: ${result.why}`
    case 'failed':
      return `${name}  FAILED: ${result.why}`
  }
}

function cells<R>(columns: readonly Column<R>[], result: R): string {
  return columns
    .map((column) => column.text(result).padStart(column.width))
    .join('')
    .trimEnd()
}

function verdict(result: Result): string {
  return toWord(isMet(result))
}

function toWord(met: boolean | undefined): string {
  if (met === undefined) return ''
  return met ? 'met' : 'OVER'
}

function rounded(value: number | null): string {
  return value === null ? '–' : Math.round(value).toLocaleString('en')
}

function fine(value: number | null): string {
  return value === null ? '–' : value.toFixed(2)
}

function amount(value: number): string {
  return value >= 100 ? rounded(value) : fine(value)
}
