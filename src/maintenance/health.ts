// The health of this controller, as probes read it: checks that run when a probe asks, at most once a second.
import { statfs } from 'node:fs/promises'
import type { Clock, Instant } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { Authority } from '../pki/authority.ts'
import { isWithinDates } from '../pki/certificates.ts'
import type { Cluster } from '../storage/cluster/cluster.ts'
import type { Store } from '../storage/store.ts'

// Anyone may ask, so more questions must not cost more checks.
const MIN_INTERVAL_MS = 1_000

/** The result of the last run of a check. */
export interface HealthCheckResult {
  readonly id: string
  readonly isHealthy: boolean
  readonly checkedAt: Instant
  readonly durationMs: number
  /** How many times in a row it has failed, since when, and a sentence on why; absent while it passes. */
  readonly failure?: { readonly count: number; readonly since: Instant; readonly reason: string }
}

export interface HealthReport {
  readonly isHealthy: boolean
  readonly checks: readonly HealthCheckResult[]
}

interface HealthCheck {
  readonly id: string
  /** One sentence for probes; the cause goes to the log. */
  readonly reason: string
  /** @throws if the check fails */
  run(): void | Promise<void>
}

interface HealthParts {
  readonly store: Store
  /** The controllers among which this one is; undefined if it is alone. */
  readonly cluster: Cluster | undefined
  readonly authority: Authority
  readonly clock: Clock
  readonly log: Log
  readonly directory: string
  /** How much of the disk must be free. */
  readonly minFreeBytes: number
}

export class Health {
  readonly #clock: Clock
  readonly #log: Log
  readonly #checks: readonly HealthCheck[]
  #results: readonly HealthCheckResult[] = []
  /** By the monotonic clock. */
  #checkedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined

  constructor(parts: HealthParts) {
    this.#clock = parts.clock
    this.#log = parts.log
    this.#checks = listHealthChecks(parts)
  }

  /** Runs the checks, unless they ran less than a second ago. Never rejects. */
  async report(): Promise<HealthReport> {
    const isDue = this.#clock.monotonic() - this.#checkedAt >= MIN_INTERVAL_MS
    if (isDue) this.#running ??= this.#run()
    await this.#running
    return { isHealthy: this.#results.every(({ isHealthy }) => isHealthy), checks: this.#results }
  }

  async #run(): Promise<void> {
    const results: HealthCheckResult[] = []
    for (const [at, check] of this.#checks.entries()) results.push(await this.#runCheck(check, this.#results[at]))
    this.#results = results
    this.#checkedAt = this.#clock.monotonic()
    this.#running = undefined
  }

  async #runCheck(
    { id, reason, run }: HealthCheck,
    previous: HealthCheckResult | undefined,
  ): Promise<HealthCheckResult> {
    const startedMs = this.#clock.monotonic()
    const checkedAt = this.#clock.now()
    const toResult = () => ({ id, checkedAt, durationMs: this.#clock.monotonic() - startedMs })
    try {
      await run()
      if (previous?.failure) this.#log.info({ check: id }, 'a health check passes again')
      return { ...toResult(), isHealthy: true }
    } catch (error) {
      if (!previous?.failure) this.#log.warn({ check: id, err: error }, 'a health check fails')
      const { count = 0, since = checkedAt } = previous?.failure ?? {}
      return { ...toResult(), isHealthy: false, failure: { count: count + 1, since, reason } }
    }
  }
}

function listHealthChecks(parts: HealthParts): readonly HealthCheck[] {
  return [...listOwnChecks(parts), ...(parts.cluster ? listClusterChecks(parts.cluster) : [])]
}

/** A load balancer should send to another controller what this one refuses, or will soon. */
function listClusterChecks({ lease, nodes }: Cluster): readonly HealthCheck[] {
  return [
    {
      id: 'log',
      reason: 'this controller is not in contact with the log of the cluster, and grants nothing',
      run() {
        if (!lease.isHeld) throw new Error(`the last contact was ${Math.round(lease.silentMs)} ms ago`)
      },
    },
    {
      id: 'nodes',
      reason: 'draining: this controller takes no new work, because it is about to stop',
      run() {
        if (nodes.isDraining) throw new Error('it drains')
      },
    },
  ]
}

function listOwnChecks({ store, authority, clock, directory, minFreeBytes }: HealthParts): readonly HealthCheck[] {
  return [
    { id: 'database', reason: 'the database cannot be used', run: () => store.requireUsable() },
    {
      id: 'disk',
      reason: 'the disk of the data directory is almost full',
      async run() {
        const { bavail, bsize } = await statfs(directory)
        if (bavail * bsize < minFreeBytes) throw new Error(`only ${bavail * bsize} bytes are free at ${directory}`)
      },
    },
    {
      id: 'server-certificate',
      reason: 'the server certificate is not valid now',
      run() {
        const { certificate } = authority.server
        if (!isWithinDates(certificate, clock.now()))
          throw new Error(`it is valid from ${certificate.validFrom} to ${certificate.validTo}`)
      },
    },
  ]
}
