// Draws a plan: the records that it adds, changes and removes, and who would gain or lose which service.

import type { PlanItem } from '../../server/operations/management-api/plan-items.ts'
import { toNoun } from '../client/names.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { type Graph, GraphBuilder, type NodeKind, type PlannedChange } from '../terminal/pictures/graph.ts'

/** More would not be legible. The text of the plan has them all. */
const MAX_RECORDS = 100

const CHANGES = { create: 'added', change: 'changed', clear: 'changed', delete: 'removed' } as const
const MARKS: Readonly<Record<PlannedChange, string>> = { added: '+', changed: '~', removed: '-' }

const KINDS: Readonly<Record<string, NodeKind>> = {
  identities: 'identity',
  services: 'service',
  'service-policies': 'policy',
  'edge-router-policies': 'policy',
  'service-edge-router-policies': 'policy',
  'edge-routers': 'router',
  'transit-routers': 'router',
}

interface RoleMember {
  /** On the left of the picture, or on the right. */
  readonly side: 'from' | 'to'
  readonly kind: NodeKind
}

/** The members of policies that hold roles. */
const ROLE_MEMBERS: Readonly<Record<string, RoleMember>> = {
  identityRoles: { side: 'from', kind: 'role' },
  serviceRoles: { side: 'to', kind: 'service' },
  edgeRouterRoles: { side: 'to', kind: 'router' },
}

type RecordItem = Extract<PlanItem, { readonly kind: keyof typeof CHANGES }>
type RightItem = Extract<PlanItem, { readonly kind: 'gain' | 'loss' | 'unreachable' }>

/** Draws the items of a plan. */
export async function drawPlan(items: AsyncIterable<unknown>): Promise<Graph> {
  const graph = new GraphBuilder()
  let [recordCount, namedRights, allRights] = [0, 0, 0]
  for await (const value of items) {
    const item = value as PlanItem
    switch (item.kind) {
      case 'create':
      case 'change':
      case 'clear':
      case 'delete':
        recordCount++
        if (recordCount <= MAX_RECORDS) drawRecord(graph, item)
        break
      case 'gain':
      case 'loss':
      case 'unreachable':
        namedRights++
        drawRight(graph, item)
        break
      case 'summary': {
        const { gains, loses, blockedGains, blockedLosses, unreachable } = item
        for (const { pairs } of [gains, loses, blockedGains, blockedLosses, unreachable]) allRights += pairs
      }
    }
  }
  return graph.build({
    title: recordCount === 0 ? 'Nothing would change' : 'What the plan would change',
    omitted: describeOmitted(recordCount - MAX_RECORDS, allRights - namedRights),
  })
}

function drawRecord(graph: GraphBuilder, { kind, resource, name, members = [] }: RecordItem): void {
  const change = CHANGES[kind]
  const id = toNodeId(resource, name)
  const noun = toNoun(loadApiDescription().resources[resource]?.name ?? resource)
  const isChange = change === 'changed'
  const changedNames = isChange
    ? members.map((member) => member.name).filter((member) => !(member in ROLE_MEMBERS))
    : []
  const label = [`${MARKS[change]} ${name}`, noun, ...(changedNames.length > 0 ? [changedNames.join(', ')] : [])]
  graph.addNode({ id, kind: KINDS[resource] ?? 'record', label, change })
  for (const { name: member, before, after } of members) {
    const roleMember = ROLE_MEMBERS[member]
    if (!roleMember) continue
    const [former, next] = [toRoles(before), toRoles(after)]
    for (const role of new Set([...former, ...next])) {
      const edgeChange = !next.includes(role) ? 'removed' : former.includes(role) ? undefined : 'added'
      drawRole(graph, id, { ...roleMember, member, role, change: edgeChange })
    }
  }
}

interface RoleOfPolicy extends RoleMember {
  readonly member: string
  readonly role: string
  readonly change: PlannedChange | undefined
}

function drawRole(graph: GraphBuilder, policyId: string, { member, side, kind, role, change }: RoleOfPolicy): void {
  const id = `${member} ${role}`
  graph.addNode({ id, kind, label: [role] })
  const ends = side === 'from' ? { from: id, to: policyId } : { from: policyId, to: id }
  graph.addEdge({ ...ends, label: change ? [MARKS[change]] : [], ...(change ? { change } : {}) })
}

/** A right, from the identity to the service. A service that the plan itself adds is its node. */
function drawRight(graph: GraphBuilder, { kind, identity, service, type, blockedBy = [] }: RightItem): void {
  const [from, to] = [toNodeId('identities', identity), toNodeId('services', service)]
  graph.addNode({ id: from, kind: 'identity', label: [identity] })
  graph.addNode({ id: to, kind: 'service', label: [service] })
  const verb = type === 'Dial' ? 'dialing' : 'hosting'
  const text = kind === 'gain' ? `+ gains ${verb}` : kind === 'loss' ? `- loses ${verb}` : 'no edge router left'
  const condition =
    blockedBy.length === 0 ? [] : [`${kind === 'gain' ? 'once it passes' : 'blocked by'} ${blockedBy.join(', ')}`]
  const change = kind === 'gain' ? 'added' : 'removed'
  graph.addEdge({ from, to, label: [text, ...condition], change, isRefused: condition.length > 0 })
}

function toNodeId(resource: string, name: string): string {
  return `${resource} ${name}`
}

function toRoles(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}

function describeOmitted(recordCount: number, rightCount: number): string | undefined {
  const parts = [
    ...(recordCount > 0 ? [`${recordCount} more ${recordCount === 1 ? 'record' : 'records'}`] : []),
    ...(rightCount > 0 ? [`${rightCount} more ${rightCount === 1 ? 'right' : 'rights'}`] : []),
  ]
  return parts.length === 0 ? undefined : `Left out: ${parts.join(' and ')}. The text of the plan names all records.`
}
