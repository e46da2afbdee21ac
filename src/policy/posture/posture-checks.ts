// Posture checks as they are evaluated: compiled once when they are stored, so that an evaluation only looks up and compares.
import type { OperatingSystemRule, ProcessRule } from '../../definitions/resources/posture-checks.ts'
import { toHexDigits } from '../../definitions/schema/hexadecimal.ts'
import { parseVersionRange, type VersionRange } from '../../definitions/schema/version-ranges.ts'

export interface OperatingSystemCheck {
  readonly id: string
  readonly typeId: 'OS'
  /** By type in lower case; without ranges every version passes. */
  readonly rangesByType: ReadonlyMap<string, readonly VersionRange[]>
  readonly rules: readonly OperatingSystemRule[]
}

export interface DomainCheck {
  readonly id: string
  readonly typeId: 'DOMAIN'
  /** In lower case. */
  readonly domains: ReadonlySet<string>
}

export interface MacCheck {
  readonly id: string
  readonly typeId: 'MAC'
  /** Hexadecimal digits in lower case. */
  readonly macAddresses: ReadonlySet<string>
}

/** A process that must run; if it has hashes or fingerprints, as one of those. */
export interface RequiredProcess {
  readonly osType: string
  readonly path: string
  readonly hashes: ReadonlySet<string>
  readonly signerFingerprints: ReadonlySet<string>
}

export interface ProcessCheck {
  readonly id: string
  readonly typeId: 'PROCESS'
  readonly process: RequiredProcess
}

export interface ProcessMultiCheck {
  readonly id: string
  readonly typeId: 'PROCESS_MULTI'
  readonly semantic: 'AllOf' | 'AnyOf'
  readonly processes: readonly RequiredProcess[]
}

export interface MfaCheck {
  readonly id: string
  readonly typeId: 'MFA'
  /** How long MFA stays good after it was passed; Infinity if the check has no timeout. */
  readonly timeoutMs: number
  readonly promptOnWake: boolean
  readonly promptOnUnlock: boolean
  readonly ignoreLegacyEndpoints: boolean
}

export type PostureCheck = OperatingSystemCheck | DomainCheck | MacCheck | ProcessCheck | ProcessMultiCheck | MfaCheck

export type PostureCheckType = PostureCheck['typeId']

/** A posture check as it is members. */
export interface PostureCheckRecord {
  readonly id: string
  readonly typeId: string
  readonly details: unknown
}

interface StoredProcess extends ProcessRule {
  readonly signerFingerprint?: string | null
}

interface Details {
  readonly operatingSystems?: readonly OperatingSystemRule[]
  readonly domains?: readonly string[]
  readonly macAddresses?: readonly string[]
  readonly process?: StoredProcess
  readonly semantic?: 'AllOf' | 'AnyOf'
  readonly processes?: readonly StoredProcess[]
  readonly timeoutSeconds?: number
  readonly promptOnWake?: boolean
  readonly promptOnUnlock?: boolean
  readonly ignoreLegacyEndpoints?: boolean
}

/** Compiles a stored check. A check of an unknown type, or without its members, compiles to one that nothing passes. */
export function compilePostureCheck({ id, typeId, details }: PostureCheckRecord): PostureCheck {
  const members = (details ?? {}) as Details
  switch (typeId) {
    case 'OS':
      return compileOperatingSystems(id, members.operatingSystems ?? [])
    case 'MAC':
      return { id, typeId, macAddresses: toHexSet(members.macAddresses) }
    case 'PROCESS':
      return { id, typeId, process: compileProcess(members.process ?? { osType: 'Linux', path: '' }) }
    case 'PROCESS_MULTI':
      return {
        id,
        typeId,
        semantic: members.semantic ?? 'AllOf',
        processes: (members.processes ?? []).map(compileProcess),
      }
    case 'MFA':
      return {
        id,
        typeId,
        timeoutMs: toTimeoutMs(members.timeoutSeconds ?? -1),
        promptOnWake: members.promptOnWake ?? false,
        promptOnUnlock: members.promptOnUnlock ?? false,
        ignoreLegacyEndpoints: members.ignoreLegacyEndpoints ?? false,
      }
    default:
      return { id, typeId: 'DOMAIN', domains: new Set((members.domains ?? []).map((name) => name.toLowerCase())) }
  }
}

function compileOperatingSystems(id: string, rules: readonly OperatingSystemRule[]): OperatingSystemCheck {
  const rangesByType = new Map(
    rules.map(({ type, versions }) => [
      type.toLowerCase(),
      // A range that cannot be read matches no version.
      (versions ?? []).map((text) => parseVersionRange(text) ?? []),
    ]),
  )
  return { id, typeId: 'OS', rangesByType, rules }
}

function compileProcess({
  osType,
  path,
  hashes,
  signerFingerprints,
  signerFingerprint,
}: StoredProcess): RequiredProcess {
  return {
    osType,
    path,
    hashes: toHexSet(hashes),
    signerFingerprints: toHexSet([...(signerFingerprints ?? []), ...(signerFingerprint ? [signerFingerprint] : [])]),
  }
}

function toHexSet(values: readonly string[] | null | undefined): ReadonlySet<string> {
  return new Set((values ?? []).map(toHexDigits))
}

function toTimeoutMs(seconds: number): number {
  return seconds > 0 ? seconds * 1_000 : Number.POSITIVE_INFINITY
}
