// Evaluates one posture check: a pure function of the check, what is known of the machine, and the time.

import { isInVersionRange, parseVersion } from '../../definitions/schema/version-ranges.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { MachineState, OperatingSystemResponse, PostureFacts, ProcessResponse } from './machine-state.ts'
import { evaluateMfa } from './mfa.ts'
import type {
  MfaCheck,
  OperatingSystemCheck,
  PostureCheck,
  ProcessMultiCheck,
  RequiredProcess,
} from './posture-checks.ts'

/** The result of a test: `unknown` is never taken for `passing`. */
export type Evidence = 'passing' | 'failing' | 'unknown'

/** The result of a posture check. */
export interface PostureFinding {
  readonly evidence: Evidence
  /** For a check that passes: the first instant at which it fails if nothing else happens; Infinity if time alone changes nothing. */
  readonly failsAt: Instant
}

const NEVER = Number.POSITIVE_INFINITY
const PASSING: PostureFinding = { evidence: 'passing', failsAt: NEVER }
const FAILING: PostureFinding = { evidence: 'failing', failsAt: NEVER }
const UNKNOWN: PostureFinding = { evidence: 'unknown', failsAt: NEVER }

const toFinding = (isPassing: boolean): PostureFinding => (isPassing ? PASSING : FAILING)

/** Evaluates a check. It is unknown if the machine has not reported what the check looks at. */
export function evaluateCheck(check: PostureCheck, facts: PostureFacts, now: Instant): PostureFinding {
  if (check.typeId === 'MFA') return evaluateMfaOfSessions(check, facts, now)
  return facts.machine ? evaluateMachine(check, facts.machine) : UNKNOWN
}

function evaluateMachine(check: Exclude<PostureCheck, MfaCheck>, machine: MachineState): PostureFinding {
  const { os, domain, mac } = machine
  switch (check.typeId) {
    case 'OS':
      return os ? toFinding(isOperatingSystemAccepted(check, os)) : UNKNOWN
    case 'DOMAIN':
      return domain ? toFinding(check.domains.has(domain.domain.toLowerCase())) : UNKNOWN
    case 'MAC':
      return mac ? toFinding(mac.macAddresses.some((address) => check.macAddresses.has(address))) : UNKNOWN
    case 'PROCESS':
      return evaluateProcess(check.process, machine.processesByCheck.get(check.id))
    case 'PROCESS_MULTI':
      return evaluateProcesses(check, machine)
  }
}

/** The type counts without regard to case; with versions, the reported one must be a version and lie in one of the ranges. */
function isOperatingSystemAccepted({ rangesByType }: OperatingSystemCheck, os: OperatingSystemResponse): boolean {
  const ranges = rangesByType.get(os.type.toLowerCase())
  if (!ranges || ranges.length === 0) return ranges !== undefined
  const version = parseVersion(os.version)
  return version !== undefined && ranges.some((range) => isInVersionRange(version, range))
}

export function evaluateProcess(required: RequiredProcess, reported: ProcessResponse | undefined): PostureFinding {
  if (!reported) return UNKNOWN
  const { hashes, signerFingerprints } = required
  return toFinding(
    reported.isRunning &&
      (hashes.size === 0 || hashes.has(reported.hash)) &&
      (signerFingerprints.size === 0 || reported.signerFingerprints.some((signer) => signerFingerprints.has(signer))),
  )
}

/** A check that names no process passes for no machine. */
function evaluateProcesses({ semantic, processes }: ProcessMultiCheck, machine: MachineState): PostureFinding {
  const findings = processes.map((required) => evaluateProcess(required, machine.processesByPath.get(required.path)))
  const has = (wanted: Evidence) => findings.some(({ evidence }) => evidence === wanted)
  if (semantic === 'AnyOf') {
    if (has('passing')) return PASSING
    return has('unknown') ? UNKNOWN : FAILING
  }
  if (has('failing') || processes.length === 0) return FAILING
  return has('unknown') ? UNKNOWN : PASSING
}

/** Of several API sessions all must agree; without any, nothing is known. */
function evaluateMfaOfSessions(check: MfaCheck, facts: PostureFacts, now: Instant): PostureFinding {
  const [first, ...others] = facts.apiSessions
  if (!first) return UNKNOWN
  let failsAt = evaluateMfa(check, first, facts.strictestMfaTimeoutMs, now)
  for (const other of others) {
    const otherFailsAt = evaluateMfa(check, other, facts.strictestMfaTimeoutMs, now)
    if (otherFailsAt > now !== failsAt > now) return UNKNOWN
    failsAt = Math.min(failsAt, otherFailsAt)
  }
  return failsAt > now ? { evidence: 'passing', failsAt } : FAILING
}

/** Combines the results of a policy's checks, which must all pass. If one fails, unknown ones do not matter. */
export function combineFindings(findings: readonly PostureFinding[]): PostureFinding {
  let failsAt = NEVER
  let isUnknown = false
  for (const finding of findings) {
    if (finding.evidence === 'failing') return FAILING
    if (finding.evidence === 'unknown') isUnknown = true
    failsAt = Math.min(failsAt, finding.failsAt)
  }
  if (isUnknown) return UNKNOWN
  return failsAt === NEVER ? PASSING : { evidence: 'passing', failsAt }
}
