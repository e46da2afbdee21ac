// The state of the machines of an identity: what they reported, and when its API sessions passed MFA, woke and were unlocked.
import type { Instant } from '../../foundation/clock.ts'

/** The members of every stored posture response. */
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

/** The latest reports of the machines of an identity; its API sessions share them. */
export interface MachineState {
  readonly os?: OperatingSystemResponse | undefined
  readonly domain?: DomainResponse | undefined
  readonly mac?: MacResponse | undefined
  /** By the id of the posture check, which a check of one process reads. */
  readonly processesByCheck: ReadonlyMap<string, ProcessResponse>
  /** By path, which a check of several processes reads. */
  readonly processesByPath: ReadonlyMap<string, ProcessResponse>
}

/** The state of machines as JSON: processes as lists, each with what it is found by. */
export type StoredMachineState = Pick<MachineState, 'os' | 'domain' | 'mac'> & {
  readonly processesByCheck: readonly ProcessResponse[]
  readonly processesByPath: readonly ProcessResponse[]
}

export function toStoredMachineState(machine: MachineState): StoredMachineState {
  const { processesByCheck, processesByPath } = machine
  return {
    ...machine,
    processesByCheck: [...processesByCheck.values()],
    processesByPath: [...processesByPath.values()],
  }
}

export function fromStoredMachineState(stored: StoredMachineState): MachineState {
  const { processesByCheck, processesByPath } = stored
  return {
    ...stored,
    processesByCheck: new Map(processesByCheck.map((process) => [process.postureCheckId, process])),
    processesByPath: new Map(processesByPath.map((process) => [process.path ?? '', process])),
  }
}

/** The reported processes, each once: one that checks of one process and of several ask for is found by check and by path. */
export function listProcesses({ processesByCheck, processesByPath }: MachineState): ProcessResponse[] {
  const processes = new Map<string, ProcessResponse>()
  for (const process of [...processesByCheck.values(), ...processesByPath.values()]) {
    // By what it says, because a state that was stored has two objects of it.
    const key = JSON.stringify([process.postureCheckId, process.path])
    const present = processes.get(key)
    if (!present || present.at < process.at) processes.set(key, process)
  }
  return [...processes.values()]
}

/** Whether machines reported the same, whenever they did. */
export function isSameReport(some: MachineState, others: MachineState): boolean {
  const toText = (state: MachineState) =>
    JSON.stringify(toStoredMachineState(state), (key, value) => (key === 'at' ? undefined : value))
  return toText(some) === toText(others)
}

/** The evidence of an API session about the person at the machine. A time is null if it never happened. */
export interface MfaState {
  readonly id: string
  readonly mfaPassedAt: Instant | null
  readonly wokenAt: Instant | null
  readonly unlockedAt: Instant | null
}

/** The facts that a posture check is evaluated against. */
export interface PostureFacts {
  /** Undefined if no machine of the identity has reported anything. */
  readonly machine: MachineState | undefined
  /** The API session that the evaluation is about, or all those of the identity. */
  readonly apiSessions: readonly MfaState[]
  /** How long MFA stays good by the strictest MFA check that policies demand of the identity, in milliseconds. */
  readonly strictestMfaTimeoutMs: number
}
