// The sub-lists that policies decide: for one record, the policies that match it and what they lead to.
import type { Scope } from '../behavior.ts'
import type { ReadContext } from '../context.ts'
import type { PolicyIndex, PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { mergeSelectors, type RoleBearer } from '../policy/role-selector.ts'
import { loadRoleBearer } from './role-bearers.ts'

export class PolicyScopes {
  readonly #index: PolicyIndex

  constructor(index: PolicyIndex) {
    this.#index = index
  }

  // ---- of an identity: @throws NOT_FOUND ----

  async servicePoliciesOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    return toPolicyScope(this.#index.servicePoliciesOf(await loadRoleBearer(context, id)))
  }

  /** @param policyType `dial`, `bind` or undefined for both */
  async servicesOfIdentity(context: ReadContext, id: string, policyType: unknown): Promise<Scope> {
    return this.servicesOf(await loadRoleBearer(context, id), parsePolicyType(policyType))
  }

  /** The services that an identity may dial or bind. */
  servicesOf(identity: RoleBearer, type?: PolicyType): Scope {
    const matching = this.#index.servicePoliciesOf(identity, type)
    return toObjectScope(matching, () => this.#index.servicesGrantedBy(matching))
  }

  async edgeRouterPoliciesOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    return toPolicyScope(this.#index.edgeRouterPoliciesOf(await loadRoleBearer(context, id)))
  }

  async edgeRoutersOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    const identity = await loadRoleBearer(context, id)
    return toObjectScope(this.#index.edgeRouterPoliciesOf(identity), () => this.#index.routersOf(identity))
  }

  // ---- of a service ----

  servicePoliciesOfService(id: string): Scope {
    return toPolicyScope(this.#index.servicePoliciesOfService(id))
  }

  /** @param policyType `dial`, `bind` or undefined for both */
  identitiesOfService(id: string, policyType: unknown): Scope {
    return toSubjectScope(this.#index.servicePoliciesOfService(id, parsePolicyType(policyType)))
  }

  serviceEdgeRouterPoliciesOfService(id: string): Scope {
    return toPolicyScope(this.#index.serviceEdgeRouterPoliciesOf(id))
  }

  edgeRoutersOfService(id: string): Scope {
    return toObjectScope(this.#index.serviceEdgeRouterPoliciesOf(id), () => this.#index.routersOfService(id))
  }

  // ---- of an edge router ----

  edgeRouterPoliciesOfRouter(id: string): Scope {
    return toPolicyScope(this.#index.edgeRouterPoliciesOfRouter(id))
  }

  identitiesOfRouter(id: string): Scope {
    return toSubjectScope(this.#index.edgeRouterPoliciesOfRouter(id))
  }

  serviceEdgeRouterPoliciesOfRouter(id: string): Scope {
    return toPolicyScope(this.#index.serviceEdgeRouterPoliciesOfRouter(id))
  }

  servicesOfRouter(id: string): Scope {
    return toSubjectScope(this.#index.serviceEdgeRouterPoliciesOfRouter(id))
  }
}

function toPolicyScope(found: readonly IndexedPolicy[]): Scope {
  return { ids: found.map(({ id }) => id) }
}

// From more ids on, a page costs less by asking for what the policies ask for: measured at a page of ten.
const MAX_IDS = 100

/** What policies grant together: a few records by their ids, many by the roles that lead to them. */
function toObjectScope(granting: readonly IndexedPolicy[], idsOf: () => readonly string[]): Scope {
  const sides = granting.map((policy) => policy.objects)
  const ids = sides.some(({ isAll }) => isAll) ? undefined : idsOf()
  return ids && ids.length <= MAX_IDS ? { ids } : { sides: mergeSelectors(sides) }
}

/** The identities that receive a grant from any of the policies. */
function toSubjectScope(granting: readonly IndexedPolicy[]): Scope {
  return { sides: mergeSelectors(granting.map((policy) => policy.subjects)) }
}

function parsePolicyType(policyType: unknown): PolicyType | undefined {
  if (policyType === 'dial') return 'Dial'
  return policyType === 'bind' ? 'Bind' : undefined
}
