// What is known of the machines of an identity: what they reported, and when its API sessions passed MFA, woke and were unlocked.
import type { Instant } from '../../foundation/clock.ts'

/** What every stored posture response has. */
export interface StoredResponse {
  readonly at: Instant
  /** The posture check that the client responded to, as the client named it. */
  readonly postureCheckId: string
}

export interface OperatingSystemResponse extends StoredResponse {
  readonly type: string
  readonly version: string
  readonly build: string | null
}

export interface DomainResponse extends StoredResponse {
  readonly domain: string
}

export interface MacResponse extends StoredResponse {
  /** Hexadecimal digits in lower case. */
  readonly macAddresses: readonly string[]
}

export interface ProcessResponse extends StoredResponse {
  readonly path: string | null
  readonly isRunning: boolean
  /** Hexadecimal digits in lower case, as the fingerprints are. */
  readonly hash: string
  readonly signerFingerprints: readonly string[]
}

/** What the machines of an identity reported last; its API sessions share it. */
export interface MachineState {
  readonly os?: OperatingSystemResponse | undefined
  readonly domain?: DomainResponse | undefined
  readonly mac?: MacResponse | undefined
  /** By the id of the posture check, which a check of one process reads. */
  readonly processesByCheck: ReadonlyMap<string, ProcessResponse>
  /** By path, which a check of several processes reads. */
  readonly processesByPath: ReadonlyMap<string, ProcessResponse>
}

/** What an API session proves about the person at the machine. Times are null if it never happened. */
export interface MfaState {
  readonly id: string
  readonly mfaPassedAt: Instant | null
  readonly wokenAt: Instant | null
  readonly unlockedAt: Instant | null
}

/** What a posture check is evaluated against. */
export interface PostureFacts {
  /** Undefined if no machine of the identity has reported anything. */
  readonly machine: MachineState | undefined
  /** The API session that the evaluation is about, or all those of the identity. */
  readonly apiSessions: readonly MfaState[]
  /** How long MFA stays good by the strictest MFA check that policies demand of the identity, in milliseconds. */
  readonly strictestMfaTimeoutMs: number
}
