// What stands between an identity and a service: for each policy that grants it, the posture checks and whether they pass.
import type { Access } from '../access/access.ts'
import type { Viewer } from '../access/viewers.ts'
import { toIsoTime } from '../clock.ts'
import type { ReadContext } from '../context.ts'
import { getCompiledResource } from '../model/index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { RawJson, toJsonText } from '../records/raw-json.ts'
import type { AnyRow } from '../resources/define.ts'
import { postureChecks } from '../resources/posture-checks.ts'
import { getRecordTable } from '../store/record-tables.ts'

/** By policy id: JSON of its set of posture queries. */
export type PostureQuerySets = ReadonlyMap<string, RawJson>

// Of a check that has no time limit.
const NO_TIMEOUT_SECONDS = -1

/** Evaluates the checks of policies for a viewer. Returns undefined if none of the policies has a check. */
export async function postureQuerySets(
  access: Access,
  context: Pick<ReadContext, 'db'>,
  policies: readonly IndexedPolicy[],
  { identity, apiSessionId }: Viewer,
): Promise<PostureQuerySets | undefined> {
  const judged = policies.map((policy) => access.evaluatePolicy(policy, { identityId: identity.id, apiSessionId }))
  const ids = new Set(judged.flatMap(({ findings }) => findings.map(({ postureCheckId }) => postureCheckId)))
  if (ids.size === 0) return undefined
  const rows = await getRecordTable(postureChecks).findByIds(context.db, [...ids])
  const checks = new Map(rows.map((row) => [row.id, row]))
  return new Map(
    judged.map(({ policy, findings, evidence: ofPolicy }) => {
      const queries = findings.flatMap(({ postureCheckId, evidence }) => {
        const check = checks.get(postureCheckId)
        return check ? [postureQuery(check, evidence === 'passing')] : []
      })
      return [policy.id, postureQuerySet(policy.id, policy.type, ofPolicy === 'passing', queries)]
    }),
  )
}

/** The set of a policy without checks that is not named: clients look for one that passes for each permission. */
export function makePassingQuerySet(permission: 'Bind' | 'Dial'): RawJson {
  return postureQuerySet(`no-posture-checks-${permission.toLowerCase()}`, permission, true, [])
}

function postureQuerySet(
  policyId: string,
  policyType: string | undefined,
  isPassing: boolean,
  postureQueries: readonly RawJson[],
): RawJson {
  return new RawJson(toJsonText({ policyId, policyType, isPassing, postureQueries }))
}

interface ProcessDetails {
  readonly osType: string
  readonly path: string
}

interface CheckDetails {
  readonly process?: ProcessDetails
  readonly processes?: readonly ProcessDetails[]
  readonly timeoutSeconds?: number
}

const { links: linksOf } = getCompiledResource(postureChecks.plural).recordPlan
const shownProcess = ({ osType, path }: ProcessDetails) => ({ osType, path })

function postureQuery(check: AnyRow, isPassing: boolean): RawJson {
  const {
    process,
    processes = [],
    timeoutSeconds = NO_TIMEOUT_SECONDS,
  } = JSON.parse(check.details as string) as CheckDetails
  const remaining = isPassing || timeoutSeconds === NO_TIMEOUT_SECONDS ? timeoutSeconds : 0
  return new RawJson(
    toJsonText({
      _links: new RawJson(linksOf(check)),
      id: check.id,
      createdAt: toIsoTime(check.createdAt),
      updatedAt: toIsoTime(check.updatedAt),
      tags: new RawJson(check.tags),
      queryType: check.typeId,
      isPassing,
      timeout: timeoutSeconds,
      timeoutRemaining: remaining,
      ...(process ? { process: shownProcess(process) } : {}),
      processes: processes.map(shownProcess),
    }),
  )
}
