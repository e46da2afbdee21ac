// The metrics of the controller in the text format of Prometheus.
//
// Only requests are counted as they happen, 0.6 µs each; everything else is read when the metrics are (`measurements.ts`).
// Labels name operations and kinds, never records, so that the number of series is bounded.
import type { FastifyContextConfig } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Controller } from '../../src/controller/controller.ts'
import type { Log } from '../../src/foundation/log.ts'
import type { Load } from './load.ts'
import type { Measurement, Sample } from './measurement.ts'
import { listMeasurements } from './measurements.ts'

const PREFIX = 'controller_'

// Requests for the metrics share one rendering for so long, because it reads the database.
const MIN_INTERVAL_MS = 1_000

const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The requests of one route: of one operation at one API. */
interface RouteRequests {
  readonly labels: { readonly api: string; readonly operation: string }
  readonly countsByStatus: Map<number, number>
}

const NO_ROUTE: FastifyContextConfig = {}

export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #registry = new Registry()
  readonly #requests = new Map<FastifyContextConfig, RouteRequests>()
  readonly #durations: Histogram<'api' | 'operation'>
  readonly #now: () => number
  #rendered: Promise<string> | undefined
  #renderedAt = Number.NEGATIVE_INFINITY

  constructor(controller: Controller, load: Load) {
    const { clock, contexts, log } = controller
    this.#now = () => clock.monotonic()
    collectDefaultMetrics({ register: this.#registry })
    for (const measurement of listMeasurements(controller, contexts.create({ kind: 'system' }), load)) {
      this.#register(measurement, log)
    }
    this.#register(
      {
        name: 'requests_total',
        kind: 'counter',
        help: 'Requests with a response, by API, operation and status. The operation is none if a request matches no path.',
        labels: ['api', 'operation', 'status'],
        read: () => [...this.#requests.values()].flatMap(toSamples),
      },
      log,
    )
    this.#durations = new Histogram({
      name: `${PREFIX}request_duration_seconds`,
      help: 'How long requests take, from their head to the end of the response, by API and operation.',
      labelNames: ['api', 'operation'],
      buckets: DURATION_BUCKETS_SECONDS,
      registers: [this.#registry],
    })
  }

  /** Counts a request that has its response. */
  recordRequest(route: FastifyContextConfig, status: number, durationMs: number): void {
    const { labels, countsByStatus } = this.#findRequests(route)
    countsByStatus.set(status, (countsByStatus.get(status) ?? 0) + 1)
    this.#durations.observe(labels, durationMs / 1_000)
  }

  /** Returns all metrics, at most a second old. */
  render(): Promise<string> {
    if (!this.#rendered || this.#now() - this.#renderedAt >= MIN_INTERVAL_MS) {
      this.#rendered = this.#registry.metrics()
      this.#renderedAt = this.#now()
    }
    return this.#rendered
  }

  /** Returns the requests by status, and how long all of them took together. */
  async readRequests(): Promise<{ readonly counts: readonly Sample[]; readonly seconds: number }> {
    const { values } = await this.#durations.get()
    const sums = values.filter(({ metricName }) => metricName?.endsWith('_sum'))
    const counts = [...this.#requests.values()].flatMap(toSamples)
    return { counts, seconds: sums.reduce((sum, { value }) => sum + value, 0) }
  }

  #findRequests(route: FastifyContextConfig): RouteRequests {
    const key = route.operation ? route : NO_ROUTE
    let requests = this.#requests.get(key)
    if (!requests) {
      const labels = { api: key.api ?? 'none', operation: key.operation?.id ?? 'none' }
      requests = { labels, countsByStatus: new Map() }
      this.#requests.set(key, requests)
    }
    return requests
  }

  /** A measurement that fails is not counted, and the others are shown, because they may tell why. */
  #register({ name, kind, help, labels = [], read }: Measurement, log: Log): void {
    const options = { name: PREFIX + name, help, labelNames: [...labels], registers: [this.#registry] }
    const metric: Counter | Gauge = new (kind === 'counter' ? Counter : Gauge)({
      ...options,
      async collect() {
        metric.reset()
        try {
          for (const { labels = {}, value } of await read()) metric.inc(labels, value)
        } catch (error) {
          log.warn({ metric: name, err: error }, 'a metric could not be measured')
        }
      },
    })
  }
}

function toSamples({ labels, countsByStatus }: RouteRequests) {
  return [...countsByStatus].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value }))
}
