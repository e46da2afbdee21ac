// The sub-lists that policies decide: for one record, the policies that match it and what they lead to.

import type { PolicyIndex, PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { mergeSelectors, type RoleBearer } from '../policy/role-selector.ts'
import type { Scope } from '../storage/behavior.ts'
import type { ReadContext } from '../storage/transactions/context.ts'
import { loadRoleBearer } from './role-bearers.ts'

export class PolicyScopes {
  readonly #index: PolicyIndex

  constructor(index: PolicyIndex) {
    this.#index = index
  }

  // ---- of an identity: @throws NOT_FOUND ----

  async findServicePoliciesOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    return toPolicyScope(this.#index.findServicePolicies(await loadRoleBearer(context, id)))
  }

  /** @param policyType `dial`, `bind` or undefined for both */
  async findServicesOfIdentity(context: ReadContext, id: string, policyType: unknown): Promise<Scope> {
    return this.toServicesScope(await loadRoleBearer(context, id), parsePolicyType(policyType))
  }

  /** The services that an identity may dial or bind. */
  toServicesScope(identity: RoleBearer, type?: PolicyType): Scope {
    const matching = this.#index.findServicePolicies(identity, type)
    return toObjectScope(matching, () => this.#index.listGrantedServices(matching))
  }

  async findEdgeRouterPoliciesOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    return toPolicyScope(this.#index.findEdgeRouterPolicies(await loadRoleBearer(context, id)))
  }

  async findEdgeRoutersOfIdentity(context: ReadContext, id: string): Promise<Scope> {
    const identity = await loadRoleBearer(context, id)
    return toObjectScope(this.#index.findEdgeRouterPolicies(identity), () => this.#index.listRouters(identity))
  }

  // ---- of a service ----

  findServicePoliciesOfService(id: string): Scope {
    return toPolicyScope(this.#index.findServicePoliciesOfService(id))
  }

  /** @param policyType `dial`, `bind` or undefined for both */
  findIdentitiesOfService(id: string, policyType: unknown): Scope {
    return toSubjectScope(this.#index.findServicePoliciesOfService(id, parsePolicyType(policyType)))
  }

  findServiceEdgeRouterPoliciesOfService(id: string): Scope {
    return toPolicyScope(this.#index.findServiceEdgeRouterPolicies(id))
  }

  findEdgeRoutersOfService(id: string): Scope {
    return toObjectScope(this.#index.findServiceEdgeRouterPolicies(id), () => this.#index.listRoutersOfService(id))
  }

  // ---- of an edge router ----

  findEdgeRouterPoliciesOfRouter(id: string): Scope {
    return toPolicyScope(this.#index.findEdgeRouterPoliciesOfRouter(id))
  }

  findIdentitiesOfRouter(id: string): Scope {
    return toSubjectScope(this.#index.findEdgeRouterPoliciesOfRouter(id))
  }

  findServiceEdgeRouterPoliciesOfRouter(id: string): Scope {
    return toPolicyScope(this.#index.findServiceEdgeRouterPoliciesOfRouter(id))
  }

  findServicesOfRouter(id: string): Scope {
    return toSubjectScope(this.#index.findServiceEdgeRouterPoliciesOfRouter(id))
  }
}

function toPolicyScope(policies: readonly IndexedPolicy[]): Scope {
  return { ids: policies.map(({ id }) => id) }
}

// From more ids on, a page costs less by asking for what the policies ask for: measured at a page of ten.
const MAX_IDS = 100

/** The records that policies grant together: a few by their ids, many by the roles that lead to them. */
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
