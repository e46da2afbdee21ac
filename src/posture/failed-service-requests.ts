// The latest sessions that identities were refused because of posture checks, in memory, for administrators who look for the cause.
import { LRUCache } from 'lru-cache'
import type { Instant } from '../clock.ts'
import type { PostureComparison } from './descriptions.ts'

// How many of one identity, as OpenZiti's tools expect it, and how much memory all take together.
const MAX_PER_IDENTITY = 100
const MAX_BYTES = 32 * 1024 * 1024

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

  /** Adds a request, and drops the oldest one of an identity that has too many. */
  add(identityId: string, request: FailedServiceRequest): void {
    const earlier = this.#byIdentity.get(identityId) ?? []
    const added = { request, bytes: JSON.stringify(request).length }
    this.#byIdentity.set(identityId, [added, ...earlier.slice(0, MAX_PER_IDENTITY - 1)])
  }

  /** The requests of an identity, the newest first. */
  list(identityId: string): readonly FailedServiceRequest[] {
    return (this.#byIdentity.get(identityId) ?? []).map(({ request }) => request)
  }
}
