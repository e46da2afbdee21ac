// Whether a machine shows what policies ask of it, as far as anybody knows.
import type { IndexedPolicy } from '../policy/policy-table.ts'
import type { Evidence, PostureFinding } from '../policy/ports.ts'
import type { Access } from './access.ts'

/** Whose machine it is, and by which sign-in. */
export interface PostureSubject {
  readonly identityId: string
  readonly apiSessionId?: string
}

export interface CheckFinding extends PostureFinding {
  readonly postureCheckId: string
}

/** What each posture check of a policy finds. */
export function judgeChecks(
  { index, ports }: Access,
  policy: IndexedPolicy,
  { identityId, apiSessionId }: PostureSubject,
): CheckFinding[] {
  return index
    .postureChecksOf(policy)
    .map((postureCheckId) => ({ postureCheckId, ...ports.posture.find(postureCheckId, identityId, apiSessionId) }))
}

/** All must pass; what nobody knows is known to fail as soon as another check does. */
export function combineEvidence(findings: readonly { readonly evidence: Evidence }[]): Evidence {
  if (findings.every(({ evidence }) => evidence === 'passing')) return 'passing'
  return findings.some(({ evidence }) => evidence === 'failing') ? 'failing' : 'unknown'
}
