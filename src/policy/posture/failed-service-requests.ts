// The latest sessions that identities were refused because of posture checks, in memory, for administrators who look for the cause.
import { LRUCache } from 'lru-cache'
import type { Instant } from '../../foundation/clock.ts'
import type { PostureComparison } from './descriptions.ts'

// How many of one identity, as OpenZiti's tools expect it, and how much memory those and all together take.
const MAX_PER_IDENTITY = 100
const MAX_BYTES_PER_IDENTITY = 1024 * 1024
const MAX_BYTES = 32 * 1024 * 1024

// How much is kept of what a machine reported: enough to find the cause. A hash of 512 bits is kept whole, to be compared.
const MAX_LISTED_VALUES = 16
const MAX_TEXT_LENGTH = 128

export interface FailedCheck extends PostureComparison {
  readonly postureCheckId: string
  readonly postureCheckName: string
  readonly postureCheckType: string
}

export interface FailedServiceRequest {
  readonly when: Instant
  readonly apiSessionId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly sessionType: 'Dial' | 'Bind'
  readonly policyFailures: readonly {
    readonly policyId: string
    readonly policyName: string
    readonly checks: readonly FailedCheck[]
  }[]
}

interface StoredRequest {
  readonly request: FailedServiceRequest
  readonly bytes: number
}

export class FailedServiceRequests {
  /** By identity, the newest first; the oldest identities are evicted. */
  readonly #byIdentity = new LRUCache<string, readonly StoredRequest[]>({
    maxSize: MAX_BYTES,
    sizeCalculation: (requests) => requests.reduce((sum, { bytes }) => sum + bytes, 1),
  })

  /** Adds a request, and drops the oldest ones of an identity that has too many, or too large ones. */
  add(identityId: string, request: FailedServiceRequest): void {
    const latest = shrink(request)
    const requests = [latest]
    let bytes = latest.bytes
    for (const earlier of this.#byIdentity.get(identityId) ?? []) {
      bytes += earlier.bytes
      if (requests.length === MAX_PER_IDENTITY || bytes > MAX_BYTES_PER_IDENTITY) break
      requests.push(earlier)
    }
    this.#byIdentity.set(identityId, requests)
  }

  /** The requests of an identity, the oldest first. */
  list(identityId: string): readonly FailedServiceRequest[] {
    return (this.#byIdentity.get(identityId) ?? []).map(({ request }) => request).reverse()
  }
}

/** Shortens what was reported, and leaves out the last policies of a request that is too large by itself. */
function shrink(request: FailedServiceRequest): StoredRequest {
  const policyFailures: FailedServiceRequest['policyFailures'][number][] = []
  let bytes = measure({ ...request, policyFailures })
  for (const failure of request.policyFailures) {
    const checks = failure.checks.map((check) => ({ ...check, actualValue: shorten(check.actualValue) }))
    const shortFailure = { ...failure, checks }
    const size = measure(shortFailure)
    if (bytes + size > MAX_BYTES_PER_IDENTITY) break
    bytes += size
    policyFailures.push(shortFailure)
  }
  return { request: { ...request, policyFailures }, bytes }
}

function measure(value: object): number {
  return JSON.stringify(value).length
}

function shorten(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > MAX_TEXT_LENGTH ? `${value.slice(0, MAX_TEXT_LENGTH)}…`.toWellFormed() : value
  if (Array.isArray(value)) return value.slice(0, MAX_LISTED_VALUES).map(shorten)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shorten(member)]))
}
