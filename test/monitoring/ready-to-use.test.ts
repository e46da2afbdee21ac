// The alert rules and the dashboard that come with the controller: they ask only for what it measures.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { TestCluster } from '../world/cluster.ts'
import { commands } from '../world/manifest.ts'
import { TestPostgres } from '../world/postgres.ts'

const LISTENERS = [{ address: '127.0.0.1:0' }, { address: '127.0.0.1:0', apis: ['metrics', 'health'], tls: false }]

let server: TestPostgres
let cluster: TestCluster

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

interface Panel {
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string }[]
}

const readDocument = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/operations/${name}`, import.meta.url)), 'utf8')
const rules: readonly Rule[] = parse(readDocument('prometheus-rules.yaml')).groups[0].rules
const panels: readonly Panel[] = JSON.parse(readDocument('grafana-dashboard.json')).panels

/** The names of the metrics that the controller serves. */
const metrics = new Set<string>()

// One of several controllers has all metrics.
beforeAll(async () => {
  server = await TestPostgres.start()
  cluster = await TestCluster.create(server)
  const { addresses } = await (await cluster.open('one', { settings: { listeners: LISTENERS } })).listen()
  const text = await (await fetch(`http://${addresses[1]}/metrics`)).text()
  for (const [, name = ''] of text.matchAll(/^# TYPE (\S+)/gm)) metrics.add(name)
}, 60_000)
afterAll(async () => {
  await cluster?.close()
  await server?.stop()
})

/** The metrics that a query asks for, without what Prometheus appends to the name of a histogram. */
function listMetrics(expression: string): string[] {
  const names = expression.match(/\b(?:controller|process|nodejs)_[a-z0-9_]+/g) ?? []
  return names.map((name) => name.replace(/_(?:bucket|sum|count)$/, ''))
}

const queries = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
]

it.each(queries)('%s asks for metrics that exist: %s', (_name, expression) => {
  const missing = listMetrics(expression).filter((name) => !metrics.has(name))

  expect(missing).toEqual([])
  expect(expression).toMatch(/\b(?:controller|process|nodejs)_|^up\b/)
})

describe('the alert rules', () => {
  it.each(rules)('$alert waits, has a severity, and says what to do', ({ for: wait, labels, annotations }) => {
    expect(wait).toMatch(/^\d+[mh]$/)
    expect(labels.severity).toMatch(/^(?:info|warning|critical)$/)
    expect(annotations.summary).toMatch(/\.$/)
    expect(annotations.description).toMatch(/\.$/)
    for (const [, words = ''] of annotations.description.matchAll(/`controller ([a-z -]+?)(?: -[^`]*)?`/g))
      expect(Object.keys(commands)).toContain(words.trim().split(' ').slice(0, 2).join(':'))
  })

  it('have names of their own', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  })
})

describe('the dashboard', () => {
  it('has panels that do not overlap and fit its 24 columns', () => {
    for (const [at, { title, gridPos }] of panels.entries()) {
      const overlapping = panels
        .slice(0, at)
        .filter(
          ({ gridPos: other }) =>
            gridPos.x < other.x + other.w &&
            other.x < gridPos.x + gridPos.w &&
            gridPos.y < other.y + other.h &&
            other.y < gridPos.y + gridPos.h,
        )
      expect([title, overlapping.map((other) => other.title)]).toEqual([title, []])
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
    }
  })

  it('shows every metric of the controller', () => {
    const shownMetrics = new Set(panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => listMetrics(expr))))
    const own = [...metrics].filter((name) => name.startsWith('controller_'))

    expect(own.filter((name) => !shownMetrics.has(name))).toEqual([])
  })
})
