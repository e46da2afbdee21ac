// The data model as a router holds it: what it is told is applied by the rules of routers, and what they would fail on is noted.
import { fromBinary, toJson } from '@bufbuild/protobuf'
import {
  DataState_Action,
  DataState_ChangeSetSchema,
  type DataState_Event,
  DataState_EventSchema,
  type DataState_ServicePolicyChange,
  DataStateSchema,
  ServicePolicyRelatedEntityType,
} from '../../../server/control-channel/messages/edge_pb.ts'

const MEMBERS = {
  [ServicePolicyRelatedEntityType.RelatedService]: 'service',
  [ServicePolicyRelatedEntityType.RelatedIdentity]: 'identity',
  [ServicePolicyRelatedEntityType.RelatedPostureCheck]: 'postureCheck',
} as const

type MemberKind = (typeof MEMBERS)[keyof typeof MEMBERS]
type EntityKind = Exclude<DataState_Event['Model']['case'], 'servicePolicyChange' | undefined>

const KINDS: readonly EntityKind[] = [
  'configType',
  'config',
  'identity',
  'service',
  'servicePolicy',
  'postureCheck',
  'publicKey',
  'revocation',
]

/** The outcome of a set of changes. */
export type SetOutcome = 'applied' | 'dropped' | 'gap'

export class ModelReplica {
  index = 0
  timeline = ''
  /** Messages that a router would log as errors, or end by. */
  readonly faults: string[] = []
  #entities = emptyEntities()
  #members = new Map<string, Record<MemberKind, Set<string>>>()

  /** Takes a whole model in place of this one. */
  takeState(body: Uint8Array): void {
    const { events, endIndex, timelineId } = fromBinary(DataStateSchema, body)
    this.#entities = emptyEntities()
    this.#members = new Map()
    for (const event of events) this.#apply(event)
    this.index = Number(endIndex)
    this.timeline = timelineId
  }

  takeChanges(body: Uint8Array): SetOutcome {
    const { index, previousIndex, isSynthetic, changes } = fromBinary(DataState_ChangeSetSchema, body)
    if (!isSynthetic) {
      if (this.index > 0 && Number(index) <= this.index) return 'dropped'
      if (previousIndex > 0n && this.index > 0 && Number(previousIndex) !== this.index) return 'gap'
      this.index = Number(index)
    }
    for (const change of changes) this.#apply(change)
    this.#requireChecks()
    return 'applied'
  }

  count(kind: EntityKind): number {
    return this.#entities[kind].size
  }

  has(kind: EntityKind, id: string): boolean {
    return this.#entities[kind].has(id)
  }

  /** An entity as JSON. */
  get(kind: EntityKind, id: string): Record<string, unknown> | undefined {
    return this.#entities[kind].get(id)
  }

  membersOf(policyId: string, kind: MemberKind): string[] {
    return [...(this.#members.get(policyId)?.[kind] ?? [])].sort()
  }

  /** Whether an identity may dial (1) or bind (2) a service, as a router decides it without a look at posture. */
  permits(identityId: string, serviceId: string, policyType: 'DialPolicy' | 'BindPolicy'): boolean {
    return [...this.#members].some(([policyId, members]) => {
      const isOfType = this.get('servicePolicy', policyId)?.policyType === policyType
      return isOfType && members.identity.has(identityId) && members.service.has(serviceId)
    })
  }

  /** Everything, in an order that does not depend on history. */
  contents(): Record<string, unknown> {
    const entities = KINDS.map((kind) => [kind, Object.fromEntries([...this.#entities[kind]].sort(byKey))])
    const members = [...this.#members]
      .sort(byKey)
      .map(([id]) => [id, Object.fromEntries(Object.values(MEMBERS).map((kind) => [kind, this.membersOf(id, kind)]))])
    return { ...Object.fromEntries(entities), members: Object.fromEntries(members) }
  }

  #apply(event: DataState_Event): void {
    const { action, Model: model } = event
    if (model.case === undefined) this.faults.push('an event without a model')
    else if (model.case === 'servicePolicyChange') this.#changeMembers(model.value)
    else {
      const kind = model.case
      const id = model.case === 'publicKey' ? model.value.kid : model.value.id
      if (action === DataState_Action.Delete) this.#delete(kind, id)
      else {
        const { [kind]: entity } = toJson(DataState_EventSchema, event) as Record<string, Record<string, unknown>>
        this.#set(kind, id, entity ?? {})
      }
    }
  }

  #set(kind: EntityKind, id: string, entity: Record<string, unknown>): void {
    this.#entities[kind].set(id, entity)
    if (kind === 'servicePolicy' && !this.#members.has(id))
      this.#members.set(id, { service: new Set(), identity: new Set(), postureCheck: new Set() })
    if (kind === 'config') this.#require('configType', entity.typeId, `config ${id}`)
    if (kind === 'service')
      for (const config of listOf(entity.configs)) this.#require('config', config, `service ${id}`)
    if (kind === 'identity') {
      for (const { configs } of Object.values((entity.serviceConfigs ?? {}) as Record<string, { configs: object }>))
        for (const config of Object.values(configs)) this.#require('config', config, `identity ${id}`)
    }
  }

  #delete(kind: EntityKind, id: string): void {
    // Keys are also deleted by a set without an index.
    if (!this.#entities[kind].delete(id) && kind !== 'publicKey')
      this.faults.push(`${kind} ${id} is deleted, but unknown`)
    if (kind === 'servicePolicy') this.#members.delete(id)
    if (kind !== 'service' && kind !== 'identity' && kind !== 'postureCheck') return
    for (const members of this.#members.values()) members[kind].delete(id)
  }

  #changeMembers({ policyId, relatedEntityIds, relatedEntityType, add }: DataState_ServicePolicyChange): void {
    const kind = MEMBERS[relatedEntityType as keyof typeof MEMBERS]
    const members = this.#members.get(policyId)
    if (!members) {
      this.faults.push(`members of the policy ${policyId}, which is unknown`)
      return
    }
    for (const id of relatedEntityIds) {
      if (add) this.#require(kind, id, `policy ${policyId}`)
      // Routers count some of them, so that none may be added or removed twice.
      if (members[kind].has(id) === add) this.faults.push(`${kind} ${id} of ${policyId} is not changed by ${add}`)
      if (add) members[kind].add(id)
      else members[kind].delete(id)
    }
  }

  #require(kind: EntityKind, id: unknown, by: string): void {
    if (!this.#entities[kind].has(String(id))) this.faults.push(`${kind} ${id} is unknown, but named by ${by}`)
  }

  /** A router ends if a policy requires a posture check that it does not have. */
  #requireChecks(): void {
    for (const [policyId, { postureCheck }] of this.#members)
      for (const id of postureCheck) this.#require('postureCheck', id, `policy ${policyId}`)
  }
}

function emptyEntities(): Record<EntityKind, Map<string, Record<string, unknown>>> {
  return Object.fromEntries(KINDS.map((kind) => [kind, new Map()])) as never
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function listOf(value: unknown): unknown[] {
  return (value ?? []) as unknown[]
}
