// The figures that `controller top` shows: the newest metrics and the ones before, the routers, and counts of events.
import type { Client } from '../../client/client.ts'
import type { ServerEvent } from '../../client/event-stream.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface Metrics {
  readonly at: string
  readonly startedAt: string
  readonly samples: readonly Sample[]
}

export interface ObservedRouter {
  readonly name: string
  readonly isOnline: boolean | null
  readonly version: string
  readonly linkCount: number | null
  readonly circuitCount: number | null
}

/** One kind of event with a reason, and how often it came. */
export interface CountedReason {
  readonly kind: string
  readonly reason: string
  readonly count: number
}

interface EventData {
  readonly cause?: string
  readonly audit?: { readonly reason: string | null; readonly method: string | null; readonly count: number }
}

// As many as a screen shows; a larger network is filtered.
const MAX_ROUTERS = 500
const MAX_REASONS = 200

export class Observations {
  #previous: Metrics | undefined
  #current: Metrics | undefined
  routers: readonly ObservedRouter[] = []
  readonly #counts = new Map<string, number>()
  readonly #reasons = new Map<string, CountedReason>()

  /** Reads metrics and routers. @throws RequestError, UnreachableError */
  async read(client: Client): Promise<void> {
    const { data } = await client.call('GET', '/controller/metrics')
    const { data: routers } = await client.call(
      'GET',
      `/routers?limit=${MAX_ROUTERS}&filter=${encodeURIComponent('true sort by name')}`,
    )
    this.#previous = this.#current
    this.#current = data as Metrics
    this.routers = routers as ObservedRouter[]
  }

  countEvent({ type, data }: ServerEvent): void {
    if (type === '') return
    const { cause, audit } = JSON.parse(data) as EventData
    const count = audit?.count ?? 1
    this.#counts.set(type, (this.#counts.get(type) ?? 0) + count)
    const reason = cause ?? audit?.reason ?? undefined
    if (reason === undefined || reason === null) return
    const key = `${type} ${reason}`
    const previous = this.#reasons.get(key)
    if (!previous && this.#reasons.size >= MAX_REASONS) return
    this.#reasons.set(key, { kind: type, reason, count: (previous?.count ?? 0) + count })
  }

  get at(): string | undefined {
    return this.#current?.at
  }

  get upMs(): number {
    const { at, startedAt } = this.#current ?? {}
    return at === undefined || startedAt === undefined ? 0 : Date.parse(at) - Date.parse(startedAt)
  }

  /** How often events of a type came since the command began to watch. */
  countOf(type: string): number {
    return this.#counts.get(type) ?? 0
  }

  get reasons(): readonly CountedReason[] {
    return [...this.#reasons.values()]
  }

  /** The value of a metric, of all labels together; undefined if it is not measured. */
  sum(name: string, from = this.#current): number | undefined {
    const samples = from?.samples.filter((sample) => sample.name === name) ?? []
    return samples.length === 0 ? undefined : samples.reduce((sum, { value }) => sum + value, 0)
  }

  /** The sums of a metric by one of its labels. */
  sumByLabel(name: string, label: string): ReadonlyMap<string, number> {
    const sums = new Map<string, number>()
    for (const { name: metric, labels, value } of this.#current?.samples ?? []) {
      const key = labels[label] ?? ''
      if (metric === name) sums.set(key, (sums.get(key) ?? 0) + value)
    }
    return sums
  }

  /** How much a counter grew in a second, on average since the last look; undefined before there are two looks at one process. */
  rate(name: string): number | undefined {
    const [before, now] = [this.sum(name, this.#previous), this.sum(name)]
    const seconds = (Date.parse(this.#current?.at ?? '') - Date.parse(this.#previous?.at ?? '')) / 1_000
    if (before === undefined || now === undefined || !(seconds > 0)) return undefined
    return this.#previous?.startedAt === this.#current?.startedAt ? (now - before) / seconds : undefined
  }
}
