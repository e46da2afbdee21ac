// The links that routers make: those that the identity may use, those that carry the service, and one that is both.

import type { AnyResource } from '../../definitions/resources/define.ts'
import { edgeRouterPolicies } from '../../definitions/resources/edge-router-policies.ts'
import { serviceEdgeRouterPolicies } from '../../definitions/resources/service-edge-router-policies.ts'
import { findNearestMiss, isOneSided, type Miss, missCost } from '../../policy/nearest-miss.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { findDecidingRoles } from '../../policy/role-selector.ts'
import {
  type AdviceLink,
  type DecidingPolicy,
  type LinkName,
  type NamedRoleBearer,
  type Remedy,
  toSentenceList,
} from './chain.ts'
import { describeRouterEnrolling } from './enrolling.ts'
import {
  closeSubjectMiss,
  createPolicy,
  describeMiss,
  edgeRouterPolicyKind,
  type PolicyKind,
  serviceEdgeRouterPolicyKind,
  toPlainName,
} from './remedies.ts'
import { readRoles, sortByName } from './service-policy-links.ts'
import { type AdviceQuestion, type AdvisedRouter, findFreeRecordName, readRouters } from './subject.ts'
import { describeAbsence } from './terminator-link.ts'
import { type LinkCheck, verifyRemedies } from './verified-remedies.ts'

// Among so many routers a policy is looked for that comes close to one; in larger networks one of the others may be closer.
const MAX_CANDIDATES = 200
// A new policy names at most this many routers.
const MAX_NAMED = 5

/** One of the two kinds of policy that lead to routers, and the record whose side it decides. */
interface RouterPolicyKind {
  readonly link: LinkName
  readonly resource: AnyResource
  readonly policyKind: PolicyKind
  readonly subject: NamedRoleBearer
  /** Every policy of the kind that may be changed. */
  readonly policies: readonly IndexedPolicy[]
  /** The policies that match the subject. */
  readonly matching: readonly IndexedPolicy[]
  readonly routerIds: readonly string[]
}

/** How the two kinds stand to each other, for the records that are asked about. */
export interface RouterKinds {
  readonly ofIdentity: RouterPolicyKind
  readonly ofService: RouterPolicyKind
}

export function routerKinds({ access, identity, service }: AdviceQuestion): RouterKinds {
  const { index } = access
  return {
    ofIdentity: {
      link: 'edge-router-policy',
      resource: edgeRouterPolicies,
      policyKind: edgeRouterPolicyKind,
      subject: identity,
      policies: [...index.listEdgeRouterPolicies()].filter(isChangeablePolicy),
      matching: index.findEdgeRouterPolicies(identity),
      routerIds: index.listRouters(identity),
    },
    ofService: {
      link: 'service-edge-router-policy',
      resource: serviceEdgeRouterPolicies,
      policyKind: serviceEdgeRouterPolicyKind,
      subject: service,
      policies: [...index.listServiceEdgeRouterPolicies()],
      matching: index.findServiceEdgeRouterPolicies(service.id),
      routerIds: index.listRoutersOfService(service.id),
    },
  }
}

/** Whether a policy can be changed: not the system policy that lets the identity of a router use that router. */
function isChangeablePolicy({ id, name }: IndexedPolicy): boolean {
  return name !== `edge-router-${id}-system`
}

/** Whether policies lead from the subject of one kind to any router; `other` says which routers would be of use. */
export async function routerPolicyLink(
  question: AdviceQuestion,
  kind: RouterPolicyKind,
  other: RouterPolicyKind,
): Promise<AdviceLink> {
  const { context } = question
  const { link, subject, matching, routerIds } = kind
  if (routerIds.length > 0) {
    const routers = await readRouters(context, routerIds)
    const policies = decidingPolicies(question, matching, subject, routers)
    const words = policies.map(({ name, subjectRoles, edgeRouters = [] }) => {
      return `${name} (${subjectRoles.join(' ')} → ${toSentenceList(edgeRouters)})`
    })
    return { link, outcome: 'passed', message: toSentenceList(words), policies }
  }
  const useful = await usefulRouters(question, other)
  if (useful.length === 0) return noRouters(question, link)
  const miss = findNearestMiss(kind.policies, subject, useful)
  const message = `no policy leads from ${subject.name} to an edge router`
  const isBound = other.routerIds.length > 0
  return { link, outcome: 'failed', message, ...(await closeGap(question, kind, miss, useful, isBound)) }
}

function decidingPolicies(
  { access }: AdviceQuestion,
  matching: readonly IndexedPolicy[],
  subject: NamedRoleBearer,
  routers: readonly AdvisedRouter[],
): DecidingPolicy[] {
  const { index } = access
  return sortByName(matching).flatMap((policy) => {
    const grantedIds = new Set(index.listMatchingEdgeRouters(policy.objects))
    const edgeRouters = routers.flatMap(({ id, name }) => (grantedIds.has(id) ? [name] : []))
    if (edgeRouters.length === 0) return []
    const { id, name } = policy
    return [{ id, name, subjectRoles: readRoles(findDecidingRoles(policy.subjects, subject), subject), edgeRouters }]
  })
}

/** The routers that would close a gap: those on the other side of it, else any. */
async function usefulRouters({ context }: AdviceQuestion, other: RouterPolicyKind): Promise<AdvisedRouter[]> {
  if (other.routerIds.length > 0) return readRouters(context, other.routerIds.slice(0, MAX_CANDIDATES))
  const some = context.db.selectFrom('routers').select('id').where('isEdge', '=', 1).orderBy('name')
  const rows = await some.limit(MAX_CANDIDATES).execute()
  return readRouters(
    context,
    rows.map(({ id }) => id),
  )
}

function noRouters({ identity, service }: AdviceQuestion, link: LinkName): AdviceLink {
  const open: readonly [PolicyKind, NamedRoleBearer] =
    link === 'edge-router-policy' ? [edgeRouterPolicyKind, identity] : [serviceEdgeRouterPolicyKind, service]
  const [kind, subject] = open
  return {
    link,
    outcome: 'failed',
    message: 'there is no edge router',
    next: [
      { operation: 'create', resource: 'edge-routers', values: { name: 'edge-1' } },
      createPolicy(kind, `${toPlainName(subject)}-routers`, [subject], []),
    ],
  }
}

/**
 * The nearest way to close a gap between a subject and routers, and the changes that close it. An attribute of a router would
 * open it to every subject of the policy, so a new policy is proposed instead.
 * @param isBound whether the routers are those of the other side, so that one of them must be in common
 */
async function closeGap(
  question: AdviceQuestion,
  kind: RouterPolicyKind,
  miss: Miss | undefined,
  routers: readonly AdvisedRouter[],
  isBound: boolean,
): Promise<Pick<AdviceLink, 'nearestMiss' | 'remedy' | 'alternatives'>> {
  const { context, service } = question
  const { link, policyKind, subject, resource } = kind
  const object = miss && routers.find(({ id }) => id === miss.object.id)
  const nearest = miss && object ? { nearestMiss: describeMiss(miss, subject, object) } : {}
  const name = await findFreeRecordName(context, resource, `${toPlainName(subject)}-routers`)
  const objects = isBound ? routers.slice(0, MAX_NAMED) : []
  const candidates = [
    miss && closeSubjectMiss(policyKind, miss, subject),
    createPolicy(policyKind, name, [subject], objects),
  ]
  const isRepaired: LinkCheck = (index, identity) => {
    if (isBound) return index.listCommonRouters(identity, service.id).length > 0
    const ids = link === 'edge-router-policy' ? index.listRouters(identity) : index.listRoutersOfService(service.id)
    return ids.length > 0
  }
  return { ...nearest, ...(await verifyRemedies(question, candidates, isRepaired)) }
}

/** A router that both may use, and that is online. */
export async function commonRouterLink(
  question: AdviceQuestion,
  { ofIdentity, ofService }: RouterKinds,
): Promise<AdviceLink> {
  const { context, identity, service } = question
  const link = { link: 'common-router' } as const
  const isCommon = new Set(ofService.routerIds)
  const ids = ofIdentity.routerIds.filter((id) => isCommon.has(id))
  if (ids.length > 0) return await presence(question, await readRouters(context, ids))
  const [lacking] = [ofIdentity, ofService].filter(({ routerIds }) => routerIds.length === 0)
  if (lacking) {
    return {
      ...link,
      outcome: 'failed',
      message: `there is none as long as no router is open to ${lacking.subject.name}`,
    }
  }
  const message = `no edge router is open to both ${identity.name} and ${service.name}`
  return { ...link, outcome: 'failed', message, ...(await smallerGap(question, ofIdentity, ofService)) }
}

/** The gap may be closed from either side: from that of the service, unless the other one lacks less. */
async function smallerGap(question: AdviceQuestion, ofIdentity: RouterPolicyKind, ofService: RouterPolicyKind) {
  const { context } = question
  const sides = await Promise.all(
    [
      [ofService, ofIdentity],
      [ofIdentity, ofService],
    ].map(async ([kind, other]) => {
      const routers = await readRouters(context, (other as RouterPolicyKind).routerIds.slice(0, MAX_CANDIDATES))
      const miss = findNearestMiss((kind as RouterPolicyKind).policies, (kind as RouterPolicyKind).subject, routers)
      const cost = miss && isOneSided(miss) ? missCost(miss) : Number.POSITIVE_INFINITY
      return { kind: kind as RouterPolicyKind, miss, routers, cost }
    }),
  )
  const [smallest = sides[0]] = [...sides].sort((a, b) => (a.cost === b.cost ? 0 : a.cost - b.cost))
  const { kind, miss, routers } = smallest as (typeof sides)[number]
  return closeGap(question, kind, miss, routers, true)
}

async function presence(question: AdviceQuestion, routers: readonly AdvisedRouter[]): Promise<AdviceLink> {
  const { live } = question.access
  const edgeRouters = routers.map(({ id, name, isDisabled, isEnrolled }) => ({
    id,
    name,
    presence: isDisabled ? 'disabled' : isEnrolled ? live.network.getPresence(id) : 'not enrolled',
  }))
  const named = (wanted: string) => edgeRouters.flatMap((router) => (router.presence === wanted ? [router.name] : []))
  const link = { link: 'common-router', edgeRouters } as const
  const online = named('online')
  if (online.length > 0)
    return {
      ...link,
      outcome: 'passed',
      message: `${toSentenceList(online)} ${online.length === 1 ? 'is' : 'are'} common and online`,
    }
  const unknown = named('unknown')
  if (unknown.length > 0) {
    return {
      ...link,
      outcome: 'unknown',
      message: `${toSentenceList(unknown)} is common; it is unknown whether it is online`,
    }
  }
  const absences = edgeRouters.map(
    ({ id, name, presence }) => `${name} (${presence === 'offline' ? describeAbsence(live, id) : presence})`,
  )
  const message = `none of the common edge routers is online: ${toSentenceList(absences)}`
  const disabled = routers.find(({ isDisabled, isEnrolled }) => isDisabled && isEnrolled)
  const [offline] = named('offline')
  const newRouter = routers.find(({ isDisabled, isEnrolled }) => !isDisabled && !isEnrolled)
  const hint =
    offline !== undefined
      ? `start the program of ${offline} on its machine; its log says why it is offline`
      : newRouter && (await describeRouterEnrolling(question, newRouter))
  return {
    ...link,
    outcome: 'failed',
    message,
    ...(disabled ? { remedy: makeEnablingRemedy(disabled) } : {}),
    ...(hint === undefined ? {} : { hint }),
  }
}

function makeEnablingRemedy({ id, name }: AdvisedRouter): Remedy {
  return { operation: 'update', resource: 'edge-routers', record: { id, name }, values: { disabled: false } }
}
