// Posture responses, and how each changes the known state of a machine.
import type { Instant } from '../../foundation/clock.ts'
import type { MachineState, ProcessResponse, StoredResponse } from './machine-state.ts'

interface ReportedResponse {
  /** The posture check that the client responds to; not every client names one that exists. */
  readonly id: string
}

/** A posture response of any kind, validated and in its stored form. */
export type PostureResponse =
  | (ReportedResponse & {
      readonly typeId: 'OS'
      readonly type: string
      readonly version: string
      readonly build?: string | null
    })
  | (ReportedResponse & { readonly typeId: 'DOMAIN'; readonly domain: string })
  | (ReportedResponse & { readonly typeId: 'MAC'; readonly macAddresses: readonly string[] })
  | (ReportedResponse & {
      readonly typeId: 'PROCESS'
      readonly path?: string | null
      readonly isRunning?: boolean | null
      readonly hash?: string | null
      readonly signerFingerprints?: readonly string[]
    })
  | (ReportedResponse & { readonly typeId: 'ENDPOINT_STATE'; readonly woken?: boolean; readonly unlocked?: boolean })

export type ProcessReport = Extract<PostureResponse, { readonly typeId: 'PROCESS' }>

/** The processes that posture checks ask for. Others are not stored, so that checks bound what clients store. */
export interface DemandedProcesses {
  /** Whether the id is that of a check of one process. */
  isProcessCheck(postureCheckId: string): boolean
  /** Whether a check of several processes names the path. */
  isPathNamed(path: string): boolean
}

const EMPTY: MachineState = { processesByCheck: new Map(), processesByPath: new Map() }

/** Returns the state of a machine after it reported these. The state before is not changed. */
export function applyResponses(
  before: MachineState | undefined,
  responses: readonly PostureResponse[],
  demanded: DemandedProcesses,
  at: Instant,
): MachineState {
  const next: { -readonly [K in keyof MachineState]: MachineState[K] } = { ...(before ?? EMPTY) }
  const processes: ProcessReport[] = []
  for (const response of responses) {
    const common: StoredResponse = { at, postureCheckId: response.id }
    switch (response.typeId) {
      case 'OS':
        next.os = { ...common, type: response.type, version: response.version, build: response.build ?? null }
        break
      case 'DOMAIN':
        next.domain = { ...common, domain: response.domain }
        break
      case 'MAC':
        next.mac = { ...common, macAddresses: response.macAddresses }
        break
      case 'PROCESS':
        processes.push(response)
    }
  }
  return processes.length > 0 ? withProcesses(next, processes, demanded, at) : next
}

function withProcesses(
  state: MachineState,
  reports: readonly ProcessReport[],
  { isProcessCheck, isPathNamed }: DemandedProcesses,
  at: Instant,
): MachineState {
  const processesByCheck = new Map(state.processesByCheck)
  const processesByPath = new Map(state.processesByPath)
  for (const { id, path, isRunning, hash, signerFingerprints } of reports) {
    const process: ProcessResponse = {
      at,
      postureCheckId: id,
      path: path || null,
      isRunning: isRunning ?? false,
      hash: hash ?? '',
      signerFingerprints: signerFingerprints ?? [],
    }
    if (isProcessCheck(id)) processesByCheck.set(id, process)
    if (path && isPathNamed(path)) processesByPath.set(path, process)
  }
  return { ...state, processesByCheck, processesByPath }
}
