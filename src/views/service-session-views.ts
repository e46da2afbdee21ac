// The members of a session that are true at the moment it is looked at: its routers, and the policies that grant it.
import { roleBearerOfSession } from '../access/role-bearers.ts'
import type { ReadContext } from '../context.ts'
import type { PolicyType } from '../policy/policy-index.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import { RawJson } from '../records/raw-json.ts'
import type { ComputedFields, ComputedInput } from '../resources/define.ts'
import { renderSessionRouters } from './usable-routers.ts'

/** The session is shown to whoever made it just now: clients do not expect policies there. */
export interface NewSessionView {
  readonly maker: RoleBearer
}

export class ServiceSessionFields implements ComputedFields {
  async computeFields(
    context: ReadContext,
    rows: readonly ComputedInput[],
    view: unknown,
  ): Promise<Record<string, unknown>[]> {
    const maker = (view as NewSessionView | undefined)?.maker
    if (maker) return rows.map(({ serviceId }) => ({ edgeRouters: routers(context, maker, serviceId as string) }))
    return Promise.all(rows.map((row) => describeOne(context, row)))
  }
}

async function describeOne(context: ReadContext, row: ComputedInput): Promise<Record<string, unknown>> {
  const { access, references } = context.controller
  const [identityId, apiSessionId] = [row.identityId as string, row.apiSessionId as string]
  const identity = await roleBearerOfSession(context, { identityId, apiSessionId })
  const serviceId = row.serviceId as string
  const granting = access.filterGranting(access.findPolicies(identity, row.type as PolicyType), serviceId)
  const ids = granting.map(({ id }) => id)
  const policies = await references.find(context.db, 'service-policies', ids)
  return {
    edgeRouters: routers(context, identity, serviceId),
    servicePolicies: ids.flatMap((id) => new RawJson(policies.get(id)?.text ?? 'null')),
  }
}

function routers(context: ReadContext, identity: RoleBearer, serviceId: string): RawJson {
  return new RawJson(renderSessionRouters(context, identity, serviceId))
}
