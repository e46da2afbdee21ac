// Posture checks for people and administrators' tools: what a check demands, what the machine reported, and why that is not enough.
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { type Evidence, evaluateProcess, type PostureFinding } from './evaluate-check.ts'
import type { MachineState, MfaState, PostureFacts, ProcessResponse } from './machine-state.ts'
import { computeTimeoutRemaining, evaluateMfa, getPromptEnd, toTimeoutSeconds } from './mfa.ts'
import type { MfaCheck, PostureCheck, RequiredProcess } from './posture-checks.ts'

/** The values that a check compares, in the form of its type, as `failed-service-requests` shows them. */
export interface PostureComparison {
  /** The reported value; null if nothing was reported. */
  readonly actualValue: unknown
  readonly expectedValue: unknown
  readonly semantic?: string
  readonly criteria?: unknown
}

export function describeComparison(check: PostureCheck, facts: PostureFacts, now: Instant): PostureComparison {
  const { machine, apiSessions } = facts
  switch (check.typeId) {
    case 'OS':
      return {
        actualValue: machine?.os ? { type: machine.os.type, version: machine.os.version } : null,
        expectedValue: check.rules.map(({ type, versions }) => ({ type, versions: versions ?? [] })),
      }
    case 'DOMAIN':
      return { actualValue: machine?.domain?.domain ?? null, expectedValue: [...check.domains] }
    case 'MAC':
      return { actualValue: machine?.mac?.macAddresses ?? null, expectedValue: [...check.macAddresses] }
    case 'PROCESS':
      return {
        actualValue: describeProcess(machine?.processesByCheck.get(check.id)),
        expectedValue: renderRequiredProcess(check.process),
      }
    case 'PROCESS_MULTI':
      return {
        actualValue: check.processes.flatMap(({ path }) => describeProcess(machine?.processesByPath.get(path)) ?? []),
        expectedValue: check.processes.map(renderRequiredProcess),
        semantic: check.semantic,
      }
    case 'MFA':
      return describeMfa(check, apiSessions[0], facts, now)
  }
}

function describeProcess(process: ProcessResponse | undefined) {
  if (!process) return null
  const { path, hash, isRunning, signerFingerprints } = process
  return { path, hash, isRunning, signerFingerprints }
}

function renderRequiredProcess({ osType, path, hashes, signerFingerprints }: RequiredProcess) {
  return { osType, path, hashes: [...hashes], signerFingerprints: [...signerFingerprints] }
}

function describeMfa(
  check: MfaCheck,
  session: MfaState | undefined,
  { strictestMfaTimeoutMs }: PostureFacts,
  now: Instant,
): PostureComparison {
  const { mfaPassedAt = null, wokenAt = null, unlockedAt = null } = session ?? {}
  const isBefore = (at: Instant | null) => mfaPassedAt !== null && (at === null || at <= mfaPassedAt)
  const how = { strictestMfaTimeoutMs, isLegacyClient: false }
  const time = (at: Instant | null) => (at === null ? null : toIsoTime(at))
  return {
    actualValue: {
      passedMfa: mfaPassedAt !== null,
      passedOnWake: isBefore(wokenAt),
      passedOnUnlock: isBefore(unlockedAt),
      timedOut: mfaPassedAt !== null && hasTimedOut(check, mfaPassedAt, strictestMfaTimeoutMs, now),
    },
    expectedValue: {
      passedMfa: true,
      passedOnWake: check.promptOnWake,
      passedOnUnlock: check.promptOnUnlock,
      timedOut: false,
    },
    criteria: {
      passedMfaAt: time(mfaPassedAt),
      wokenAt: time(wokenAt),
      unlockedAt: time(unlockedAt),
      timeoutSeconds: toTimeoutSeconds(check),
      timeoutRemainingSeconds: computeTimeoutRemaining(check, session, how, now),
    },
  }
}

function hasTimedOut(check: MfaCheck, mfaPassedAt: Instant, strictestTimeoutMs: number, now: Instant): boolean {
  return now - mfaPassedAt > Math.min(check.timeoutMs, strictestTimeoutMs)
}

// ---- sentences -------------------------------------------------------------------------------------------------------

/** Says in one sentence, without a full stop, why a check passes, fails or is unknown. */
export function explainFinding(
  check: PostureCheck,
  { evidence, failsAt }: PostureFinding,
  facts: PostureFacts,
  now: Instant,
): string {
  if (check.typeId === 'MFA') return explainMfa(check, evidence, failsAt, facts, now)
  const { machine } = facts
  if (check.typeId === 'PROCESS_MULTI') return explainProcesses(check.processes, check.semantic, machine)
  if (evidence === 'unknown') return `the machine has not reported ${SUBJECTS[check.typeId]}`
  switch (check.typeId) {
    case 'OS':
      return compareValues(`${machine?.os?.type} ${machine?.os?.version}`, describeVersionRules(check), evidence)
    case 'DOMAIN':
      return compareValues(machine?.domain?.domain || 'no domain', [...check.domains], evidence)
    case 'MAC':
      return compareValues(
        (machine?.mac?.macAddresses ?? []).join(', ') || 'no address',
        [...check.macAddresses],
        evidence,
      )
    case 'PROCESS':
      return explainProcess(check.process, machine?.processesByCheck.get(check.id))
  }
}

/** Says what a client or its machine must do so that a check passes, without a full stop. */
export function describePostureTask(check: PostureCheck, identity: string): string {
  const machine = `the machine of ${identity}`
  switch (check.typeId) {
    case 'MFA':
      return `${identity} must pass MFA`
    case 'OS':
      return `${machine} must run ${describeVersionRules(check).join(' or ') || 'an operating system that the check accepts'}`
    case 'DOMAIN':
      return `${machine} must be in the domain ${[...check.domains].join(' or ')}`
    case 'MAC':
      return `${machine} must have the network address ${[...check.macAddresses].join(' or ')}`
    case 'PROCESS':
      return `${machine} must run ${check.process.path}`
    case 'PROCESS_MULTI': {
      const paths = check.processes.map(({ path }) => path)
      return `${machine} must run ${paths.join(check.semantic === 'AllOf' ? ' and ' : ' or ')}`
    }
  }
}

function describeVersionRules({ rules }: Extract<PostureCheck, { readonly typeId: 'OS' }>): string[] {
  return rules.map(({ type, versions }) => [type, (versions ?? []).join(' or ')].join(' ').trim())
}

const SUBJECTS = {
  OS: 'its operating system',
  DOMAIN: 'its domain',
  MAC: 'its network addresses',
  PROCESS: 'the process',
} as const

function compareValues(reported: string, accepted: readonly string[], evidence: Evidence): string {
  return evidence === 'passing'
    ? `the machine reported ${reported}`
    : `the machine reported ${reported}; accepted: ${accepted.join(', ') || 'nothing'}`
}

function explainProcess(required: RequiredProcess, reported: ProcessResponse | undefined): string {
  const { path, hashes } = required
  if (!reported) return `the machine has not reported ${path}`
  if (!reported.isRunning) return `${path} does not run`
  if (evaluateProcess(required, reported).evidence === 'passing') return `${path} runs`
  return hashes.size > 0 && !hashes.has(reported.hash)
    ? `${path} runs with the hash ${reported.hash || '(none)'}, which is not one of those accepted`
    : `${path} runs, and none of its signers is accepted`
}

function explainProcesses(
  processes: readonly RequiredProcess[],
  semantic: 'AllOf' | 'AnyOf',
  machine: MachineState | undefined,
): string {
  const sentences = processes.map((required) => explainProcess(required, machine?.processesByPath.get(required.path)))
  return `${semantic === 'AllOf' ? 'all of' : 'any of'}: ${sentences.join('; ')}`
}

function explainMfa(
  check: MfaCheck,
  evidence: Evidence,
  failsAt: Instant,
  { apiSessions, strictestMfaTimeoutMs }: PostureFacts,
  now: Instant,
): string {
  const [session] = apiSessions
  if (!session) return 'the identity has no API session'
  if (evidence === 'unknown') return 'some API sessions of the identity have passed MFA, and others have not'
  if (session.mfaPassedAt === null) return 'the API session has not passed MFA'
  const passed = `the API session passed MFA at ${toIsoTime(session.mfaPassedAt)}`
  if (evidence === 'passing')
    return failsAt === Number.POSITIVE_INFINITY ? passed : `${passed}, which is good until ${toIsoTime(failsAt)}`
  const isPromptOpen = getPromptEnd(check, session) <= now
  const hasExpired =
    evaluateMfa({ ...check, promptOnWake: false, promptOnUnlock: false }, session, strictestMfaTimeoutMs, now) <= now
  return hasExpired || !isPromptOpen
    ? `${passed}, and that has timed out`
    : `${passed}, and the machine has woken or was unlocked since`
}
