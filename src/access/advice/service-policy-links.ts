// The links that service policies make: the right to dial or host, and what machines must show for it.

import { postureChecks } from '../../definitions/resources/posture-checks.ts'
import { servicePolicies } from '../../definitions/resources/service-policies.ts'
import { findNearestMiss } from '../../policy/nearest-miss.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { describeComparison, describePostureTask, explainFinding } from '../../policy/posture/descriptions.ts'
import { findDecidingRoles } from '../../policy/role-selector.ts'
import type { EvaluatedPolicy } from '../decision.ts'
import { type AdviceLink, type NamedRoleBearer, toSentenceList } from './chain.ts'
import {
  closeObjectMiss,
  closeSubjectMiss,
  createPolicy,
  describeMiss,
  servicePolicyKind,
  toPlainName,
} from './remedies.ts'
import { findUnreportedClients, LEGACY_SIGN_IN_HINT } from './router-posture.ts'
import { type AdviceQuestion, findFreeRecordName, loadNamesByIds } from './subject.ts'
import { verifyRemedies } from './verified-remedies.ts'

/** The policies of the type that link the two, in the order of their names. */
function findLinkingPolicies({ access, identity, service, type }: AdviceQuestion): IndexedPolicy[] {
  return sortByName(access.filterGranting(access.findPolicies(identity, type), service.id))
}

/** A stable order, so that the advice does not depend on earlier changes of the index. */
export function sortByName<P extends { readonly name: string }>(policies: readonly P[]): P[] {
  return [...policies].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Roles as people read them: a record that is named by its id goes by its name. */
export function readRoles(roles: readonly string[], { id, name }: NamedRoleBearer): string[] {
  return roles.map((role) => (role === `@${id}` ? `@${name}` : role))
}

export async function servicePolicyLink(question: AdviceQuestion): Promise<AdviceLink> {
  const { access, identity, service, type } = question
  const linking = findLinkingPolicies(question)
  if (linking.length > 0) {
    const policies = linking.map((policy) => ({
      id: policy.id,
      name: policy.name,
      subjectRoles: readRoles(findDecidingRoles(policy.subjects, identity), identity),
      objectRoles: readRoles(findDecidingRoles(policy.objects, service), service),
    }))
    const words = policies.map(
      ({ name, subjectRoles, objectRoles }) => `${name} (${subjectRoles.join(' ')} → ${objectRoles.join(' ')})`,
    )
    return { link: 'service-policy', outcome: 'passed', message: toSentenceList(words), policies }
  }
  const miss = findNearestMiss(access.index.listServicePolicies(type), identity, [service])
  const candidates = [
    miss && closeSubjectMiss(servicePolicyKind, miss, identity),
    miss && closeObjectMiss(servicePolicyKind, miss, service),
    await newPolicy(question),
  ]
  return {
    link: 'service-policy',
    outcome: 'failed',
    message: `no ${type} policy links ${identity.name} with ${service.name}`,
    ...(miss ? { nearestMiss: describeMiss(miss, identity, service) } : {}),
    ...(await verifyRemedies(question, candidates, (index, subject) => index.grants(subject, service.id, type))),
  }
}

/** The command for a policy that names only these two records, so that it grants nothing to other identities. */
async function newPolicy({ context, identity, service, type }: AdviceQuestion) {
  const verb = type === 'Dial' ? 'dials' : 'hosts'
  const name = await findFreeRecordName(
    context,
    servicePolicies,
    `${toPlainName(identity)}-${verb}-${toPlainName(service)}`,
  )
  return createPolicy(servicePolicyKind, name, [identity], [service], { type })
}

export async function postureLink(question: AdviceQuestion): Promise<AdviceLink> {
  const { context, access, identity, service, type } = question
  const { policies } = access.decide({ identity, serviceId: service.id, type })
  const evaluated = sortEvaluated(policies)
  const link = { link: 'posture' } as const
  if (evaluated.length === 0) {
    return {
      ...link,
      outcome: 'unknown',
      message: 'what would be asked of the machine depends on the policy that is missing',
    }
  }
  const free = evaluated.find(({ findings }) => findings.length === 0)
  if (free) return { ...link, outcome: 'passed', message: `${free.policy.name} asks nothing of the machine` }
  const [best = evaluated[0]] = [...evaluated].sort((a, b) => RANKS[a.evidence] - RANKS[b.evidence])
  const { policy, findings, evidence } = best as EvaluatedPolicy
  const names = await loadNamesByIds(
    context,
    postureChecks,
    findings.map(({ check }) => check.id),
  )
  const { facts, now } = access.evaluatePosture({ identity })
  const described = findings.map(({ check, ...finding }) => ({
    id: check.id,
    name: names.get(check.id) ?? check.id,
    evidence: finding.evidence,
    message: explainFinding(check, finding, facts, now),
    reported: describeComparison(check, facts, now).actualValue,
  }))
  const open = described.flatMap((one) => (one.evidence === 'passing' ? [] : `${one.name} (${one.message})`))
  const message = {
    passing: `the machine shows what ${policy.name} asks of it`,
    failing: `the machine of ${identity.name} does not show what ${policy.name} asks of it for ${service.name}: ${toSentenceList(open)}`,
    unknown: `nothing is known of what ${policy.name} asks of the machine: ${toSentenceList(open)}`,
  }[evidence]
  const outcomes = { passing: 'passed', failing: 'failed', unknown: 'unknown' } as const
  const [unreported] = await findUnreportedClients(context, 1, identity.id)
  const tasks = findings.flatMap(({ check, evidence }) =>
    evidence === 'passing' ? [] : describePostureTask(check, identity.name),
  )
  if (unreported) {
    const refusal = `routers of release 2 refuse ${service.name} to the client of ${identity.name}, because it signed in by OpenID Connect, and the C SDK reports nothing to routers that ${policy.name} asks of the machine`
    return {
      ...link,
      outcome: 'failed',
      message: evidence === 'passing' ? refusal : `${message}; ${refusal}`,
      postureChecks: described,
      hint: toSentenceList([...tasks, LEGACY_SIGN_IN_HINT]),
    }
  }
  const hint = tasks.length === 0 ? {} : { hint: toSentenceList(tasks) }
  return { ...link, outcome: outcomes[evidence], message, postureChecks: described, ...hint }
}

function sortEvaluated(policies: readonly EvaluatedPolicy[]): EvaluatedPolicy[] {
  return [...policies].sort((a, b) => (a.policy.name < b.policy.name ? -1 : 1))
}

const RANKS = { passing: 0, unknown: 1, failing: 2 } as const
