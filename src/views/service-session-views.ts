// The members of a session that are true at the moment it is looked at: its routers, and the policies that grant it.
import { attributesOfSession } from '../access/attributes-of.ts'
import type { ReadContext } from '../context.ts'
import type { PolicyType } from '../policy/policy-index.ts'
import type { Attributed } from '../policy/side.ts'
import { RawJson } from '../records/raw-json.ts'
import type { Facts, LiveView } from '../resources/define.ts'
import { sessionRoutersText } from './usable-routers.ts'

/** The session is shown to whoever made it just now: clients do not expect policies there. */
export interface NewSessionView {
  readonly maker: Attributed
}

export class ServiceSessionViews implements LiveView {
  async describe(context: ReadContext, rows: readonly Facts[], view: unknown): Promise<Record<string, unknown>[]> {
    const maker = (view as NewSessionView | undefined)?.maker
    if (maker) return rows.map(({ serviceId }) => ({ edgeRouters: routers(context, maker, serviceId as string) }))
    return Promise.all(rows.map((row) => describeOne(context, row)))
  }
}

async function describeOne(context: ReadContext, row: Facts): Promise<Record<string, unknown>> {
  const { access, references } = context.controller
  const [identityId, apiSessionId] = [row.identityId as string, row.apiSessionId as string]
  const identity = await attributesOfSession(context, { identityId, apiSessionId })
  const serviceId = row.serviceId as string
  const granting = access.granting(access.policiesOf(identity, row.type as PolicyType), serviceId)
  const ids = granting.map(({ id }) => id)
  const policies = await references.of(context.db, 'service-policies', ids)
  return {
    edgeRouters: routers(context, identity, serviceId),
    servicePolicies: ids.flatMap((id) => new RawJson(policies.get(id)?.text ?? 'null')),
  }
}

function routers(context: ReadContext, identity: Attributed, serviceId: string): RawJson {
  return new RawJson(sessionRoutersText(context, identity, serviceId))
}
