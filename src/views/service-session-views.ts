// The members of a session that are true at the moment it is looked at: its routers, and the policies that grant it.
import { attributesOfSession } from '../access/attributes-of.ts'
import type { ReadContext } from '../context.ts'
import type { PolicyType } from '../policy/policy-index.ts'
import { RawJson } from '../records/raw-json.ts'
import type { Facts, LiveView } from '../resources/define.ts'
import { usableRouters } from './usable-routers.ts'

/** The session is shown to whoever made it just now: clients do not expect policies there. */
export interface NewSessionView {
  readonly isNew: true
}

export class ServiceSessionViews implements LiveView {
  describe(context: ReadContext, rows: readonly Facts[], view: unknown): Promise<Record<string, unknown>[]> {
    const isNew = (view as NewSessionView | undefined)?.isNew === true
    return Promise.all(rows.map((row) => describeOne(context, row, isNew)))
  }
}

async function describeOne(context: ReadContext, row: Facts, isNew: boolean): Promise<Record<string, unknown>> {
  const { access, references } = context.controller
  const [identityId, apiSessionId] = [row.identityId as string, row.apiSessionId as string]
  const identity = await attributesOfSession(context, { identityId, apiSessionId })
  const serviceId = row.serviceId as string
  const routers = await usableRouters(context, identity, serviceId)
  const edgeRouters = routers.map((router) => ({ ...router, urls: router.supportedProtocols }))
  if (isNew) return { edgeRouters }
  const granting = access.granting(access.policiesOf(identity, row.type as PolicyType), serviceId)
  const ids = granting.map(({ id }) => id)
  const policies = ids.length === 0 ? new Map() : await references.of(context.db, 'service-policies', ids)
  return {
    edgeRouters,
    servicePolicies: ids.flatMap((id) => (policies.has(id) ? [new RawJson(policies.get(id)?.text ?? 'null')] : [])),
  }
}
