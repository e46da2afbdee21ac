// The text of `controller top`: some lines of figures, and one table below them.
import { stripVTControlCharacters } from 'node:util'
import { colorText } from '../../terminal/colors.ts'
import { escapeControls } from '../../terminal/text.ts'
import type { CountedReason, Observations, ObservedRouter } from './observations.ts'

export const views = ['routers', 'reasons', 'records', 'requests'] as const
export type View = (typeof views)[number]

/** The choices of the user about the table. */
export interface TopChoices {
  readonly view: View
  /** The number of the column that rows are sorted by, and whether the least comes first. */
  readonly sortColumn: number
  readonly isAscending: boolean
  /** Rows that contain it are shown. */
  readonly filter: string
}

export interface Surroundings {
  readonly target: string
  /** The reason for which the figures are old; undefined if they are not. */
  readonly problem?: string | undefined
  readonly hasColors: boolean
  readonly columns: number
}

type Cell = string | number

interface Table {
  readonly headers: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

/** The lines of figures. */
export function renderFigures(
  observations: Observations,
  { target, problem, hasColors, columns }: Surroundings,
): string[] {
  const count = (name: string) => toCount(observations.sum(name))
  const online = observations.routers.filter(({ isOnline }) => isOnline === true).length
  const records = observations.sumByLabel('records', 'resource')
  const checks = [...observations.sumByLabel('health_check', 'check')]
  const expiring = [...observations.sumByLabel('certificates_expiring', 'kind')].map(([kind, n]) => `${n} ${kind}`)
  const lines = [
    `${target}  up ${toDuration(observations.upMs / 1_000)}  ${observations.at?.slice(11, 19) ?? ''} UTC`,
    `requests    ${describeRequests(observations)}`,
    `load        event loop ${toMs(observations.sum('event_loop_delay_seconds'))} late, ${toRate(observations.rate('commits_total'))} commits/s`,
    `waiting     ${count('write_queue_length')} writes, ${count('password_queue_length')} passwords`,
    `network     ${online} of ${observations.routers.length} routers online, ${count('links')} links, ${count('circuits')} circuits, ${records.get('terminators') ?? 0} terminators`,
    `dials       ${observations.countOf('circuit-begun')} begun, ${observations.countOf('circuit-failed')} failed, ${observations.countOf('circuit-ended')} ended since this began`,
    `sessions    ${count('api_sessions')} API sessions, ${records.get('sessions') ?? 0} for services`,
    `sign-ins    ${observations.countOf('sign-in')} accepted, ${observations.countOf('sign-in-refused')} refused since this began`,
    ...describeCluster(observations),
    `checks      ${checks.map(([name, value]) => (value === 1 ? `${name} ok` : mark(`${name} FAILS`, hasColors))).join(', ')}`,
    `ending soon ${expiring.length > 0 ? mark(`${expiring.join(', ')} certificates`, hasColors) : 'no certificate'}`,
  ]
  if (problem !== undefined) lines[0] = mark(escapeControls(problem), hasColors)
  return lines.map((line) => cut(line, columns))
}

/** The lines of the table, headers first; as many as fit. @param marksOrder whether the header says which column rows are sorted by */
export function renderTopTable(
  observations: Observations,
  choices: TopChoices,
  columns: number,
  maxLines: number,
  marksOrder = false,
): string[] {
  const arrow = marksOrder ? (choices.isAscending ? '↑' : '↓') : ''
  const { headers, rows } = selectRows(toTable(observations, choices.view), choices)
  const cells = [
    headers.map((header, at) => header.toUpperCase() + (at === choices.sortColumn ? arrow : '')),
    ...rows.map((row) => row.map(toCell)),
  ]
  const widths = headers.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
  const lines = cells.map((row) =>
    cut(
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
      columns,
    ),
  )
  return lines.slice(0, Math.max(maxLines, 0))
}

/** How many columns the table of a view has. */
export function countColumns(observations: Observations, view: View): number {
  return toTable(observations, view).headers.length
}

function selectRows({ headers, rows }: Table, { sortColumn, isAscending, filter }: TopChoices): Table {
  const words = filter.toLowerCase()
  const matching = rows.filter((row) => row.some((cell) => toCell(cell).toLowerCase().includes(words)))
  const sorted = matching.toSorted((a, b) => compare(a[sortColumn] ?? '', b[sortColumn] ?? ''))
  return { headers, rows: isAscending ? sorted : sorted.reverse() }
}

function compare(a: Cell, b: Cell): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : 1
}

function toTable(observations: Observations, view: View): Table {
  switch (view) {
    case 'routers':
      return {
        headers: ['router', 'state', 'links', 'circuits', 'version'],
        rows: observations.routers.map(toRouterRow),
      }
    case 'reasons':
      return { headers: ['event', 'reason', 'count'], rows: observations.reasons.map(toReasonRow) }
    case 'records':
      return { headers: ['records', 'count'], rows: [...observations.sumByLabel('records', 'resource')] }
    case 'requests':
      return { headers: ['operation', 'requests'], rows: [...observations.sumByLabel('requests_total', 'operation')] }
  }
}

function toRouterRow({ name, isOnline, linkCount, circuitCount, version }: ObservedRouter): Cell[] {
  return [name, isOnline === true ? 'online' : 'offline', linkCount ?? 0, circuitCount ?? 0, version]
}

function toReasonRow({ kind, reason, count }: CountedReason): Cell[] {
  return [kind, reason, count]
}

/** A line about this controller as one of several; none if it is alone. */
function describeCluster(observations: Observations): string[] {
  const live = observations.sum('cluster_nodes_live')
  if (live === undefined) return []
  const [turns, waited] = [
    observations.rate('cluster_turns_total'),
    observations.rate('cluster_turn_wait_seconds_total'),
  ]
  const duties = [...observations.sumByLabel('cluster_duty_held', 'duty')].flatMap(([duty, n]) => (n > 0 ? [duty] : []))
  const parts = [
    `${toCount(live)} live`,
    `${toCount(observations.sum('cluster_log_behind'))} commits behind`,
    `${turns && waited !== undefined ? toMs(waited / turns) : '-'} for a turn`,
    `${toCount(observations.sum('cluster_refused_total'))} refused without contact`,
    `duties: ${duties.join(', ') || 'none'}`,
  ]
  return [`controllers ${parts.join(', ')}`]
}

function describeRequests(observations: Observations): string {
  if (observations.sum('request_duration_seconds_sum') === undefined)
    return 'not counted, because no listener carries metrics'
  const [perSecond, secondsPerSecond] = [
    observations.rate('requests_total'),
    observations.rate('request_duration_seconds_sum'),
  ]
  const latency = perSecond && secondsPerSecond !== undefined ? toMs(secondsPerSecond / perSecond) : '-'
  return `${toRate(perSecond)}/s, ${latency} on average, ${toCount(observations.sum('requests_total'))} in total`
}

function toCell(cell: Cell): string {
  return typeof cell === 'number' ? String(cell) : escapeControls(cell)
}

function toCount(value: number | undefined): string {
  return value === undefined ? '-' : String(value)
}

function toRate(value: number | undefined): string {
  return value === undefined ? '-' : value.toFixed(1)
}

function toMs(seconds: number | undefined): string {
  return seconds === undefined ? '-' : `${(seconds * 1_000).toFixed(1)} ms`
}

function toDuration(seconds: number): string {
  const [days, hours, minutes] = [seconds / DAY_S, (seconds % DAY_S) / HOUR_S, (seconds % HOUR_S) / MINUTE_S].map(
    Math.floor,
  )
  return days
    ? `${days}d ${hours}h`
    : hours
      ? `${hours}h ${minutes}m`
      : `${minutes}m ${Math.floor(seconds % MINUTE_S)}s`
}

function mark(text: string, hasColors: boolean): string {
  return hasColors ? colorText(text, 'red') : text
}

/** At most as many characters as fit; codes of colors do not count. */
function cut(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line)
  return plain.length <= columns ? line : plain.slice(0, Math.max(columns, 0))
}
