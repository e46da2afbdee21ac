// Circuits: which client is connected with which service now, over which routers.

import { defineResource } from '../../../src/definitions/resources/define.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { entityReference, listOf, text, whole } from '../../../src/definitions/schema/json-schema.ts'
import type { Circuit, CircuitFilter } from '../../../src/network/circuits/circuit-table.ts'
import type { InheritedCircuit } from '../../../src/network/circuits/inherited-circuits.ts'
import { type AnyOperation, type Call, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { emptyResponse } from '../../api/responses.ts'
import {
  CompiledView,
  type RecordView,
  requireItem,
  respondWithMemoryList,
  respondWithView,
} from '../../responses/record-views.ts'

/** The body of the operations that end a circuit. */
export const circuitDeletionBody = readFieldsBody<{ readonly immediate?: boolean }>(
  { immediate: f.bool({ summary: 'Drop data that is on its way, instead of delivering it for up to ten seconds.' }) },
  { isRequired: false },
)

const shape = defineResource({
  name: 'circuit',
  plural: 'circuits',
  summary: 'The connection of a client with a service, over routers.',
  fields: {
    serviceId: f.reference('services', { access: 'read', as: 'service', nullable: true, filter: 'service' }),
    identityId: f.reference('identities', {
      access: 'read',
      as: 'identity',
      nullable: true,
      filter: 'identity',
      summary: 'The identity that dialed.',
    }),
    hostId: f.reference('identities', {
      access: 'read',
      as: 'host',
      nullable: true,
      filter: 'host',
      summary: 'The identity that hosts the service, if one does.',
    }),
    sessionId: f.text({ access: 'read', nullable: true, filter: true, summary: 'The session by which it was dialed.' }),
    terminatorId: f.text({ access: 'read', nullable: true, filter: true }),
    isInherited: f.bool({
      access: 'read',
      filter: true,
      summary: 'An earlier process of the controller created it. Only what routers report of it is known.',
    }),
    idleSince: f.time({
      access: 'read',
      nullable: true,
      filter: true,
      summary: 'Since when it has carried no data; null if no router has reported that it is idle.',
    }),
  },
  computed: {
    routers: { ...listOf(entityReference), description: 'Its path, from the router of the client on.' },
    links: { ...listOf(text), description: 'The ids of the links between its routers.' },
    ageSeconds: whole,
    idleSeconds: { ...whole, nullable: true },
  },
  columns: ['id', 'service', 'identity', 'host', 'routers', 'ageSeconds', 'idleSeconds'],
  example: { create: {}, filter: 'service.name = "web" sort by createdAt desc' },
})

/** A circuit of this process, or of an earlier one. */
type AnyCircuit = Circuit | InheritedCircuit

const isInherited = (circuit: AnyCircuit): circuit is InheritedCircuit => 'firstReportedAt' in circuit

const view: RecordView<AnyCircuit> = {
  shape,
  toRow(circuit) {
    const common = { id: circuit.id, tags: '{}', idleSince: circuit.idleSince ?? null }
    if (isInherited(circuit)) {
      const at = circuit.firstReportedAt
      const unknown = { serviceId: null, identityId: null, hostId: null, sessionId: null, terminatorId: null }
      return { ...common, ...unknown, createdAt: at, updatedAt: at, isInherited: 1 }
    }
    const { createdAt, updatedAt, serviceId, clientId, hostId, sessionId, terminatorId } = circuit
    return {
      ...common,
      createdAt,
      updatedAt,
      serviceId,
      identityId: clientId,
      hostId: hostId || null,
      sessionId: sessionId || null,
      terminatorId,
      isInherited: 0,
    }
  },
  listShown: (circuit) => ({ routers: listRouterIds(circuit) }),
  computeFields(circuit, { clock }, show) {
    const createdAt = isInherited(circuit) ? circuit.firstReportedAt : circuit.createdAt
    const { idleSince } = circuit
    return {
      routers: listRouterIds(circuit).map((id) => show('routers', id)),
      links: isInherited(circuit) ? [] : circuit.path.links.map(({ id }) => id),
      ageSeconds: toSeconds(clock.now() - createdAt),
      idleSeconds: idleSince === undefined ? null : toSeconds(clock.now() - idleSince),
    }
  },
}

function listRouterIds(circuit: AnyCircuit): readonly string[] {
  return isInherited(circuit) ? circuit.routerIds : circuit.path.routerIds
}

function toSeconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000))
}

const compiled = new CompiledView(view)
const itemSchema = { ...compiled.schema, 'x-columns': shape.columns, 'x-example-filter': shape.example.filter }

const OWN = { apis: ['management'], topic: 'circuits', isOwn: true } as const

const refersTo = (plural: string, description: string) => ({
  schema: { ...text, description, 'x-refers-to': plural },
})

export const ownCircuitOperations: readonly AnyOperation[] = [
  defineOperation({
    ...OWN,
    id: 'listCircuits',
    needsRouters: true,
    method: 'GET',
    path: '/controller/circuits',
    summary: 'Lists the connections of clients with services.',
    access: { permission: 'circuit.read', grantedTo: 'administrator' },
    query: {
      ...listQuery,
      service: refersTo('services', 'Only circuits of this service.'),
      identity: refersTo('identities', 'Only circuits that this identity dialed.'),
      router: refersTo('routers', 'Only circuits that begin, end at or pass this router.'),
    },
    returns: { kind: 'data', schema: listOf(itemSchema) },
    run(call) {
      const { service, identity, router, ...query } = call.query
      return respondWithMemoryList({ ...call, query }, compiled, listCircuits(call))
    },
  }),
  defineOperation({
    ...OWN,
    id: 'detailCircuit',
    needsRouters: true,
    method: 'GET',
    path: '/controller/circuits/:id',
    summary: 'Shows one circuit, with its path, its age, and since when it is idle.',
    access: { permission: 'circuit.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: compiled.schema },
    run(call) {
      const { id = '' } = call.params
      return respondWithView(call, compiled, requireItem(compiled, id, findCircuit(call, id)))
    },
  }),
  defineOperation<{ readonly immediate?: boolean }>({
    ...OWN,
    id: 'deleteCircuit',
    needsRouters: true,
    method: 'DELETE',
    path: '/controller/circuits/:id',
    summary: 'Ends one circuit. Its client may dial again, as long as policies let it.',
    access: { permission: 'circuit.delete', grantedTo: 'administrator' },
    body: circuitDeletionBody,
    returns: { kind: 'empty' },
    run(call) {
      const { id = '' } = call.params
      requireItem(compiled, id, findCircuit(call, id))
      call.controller.fabric.circuitDeletion.end(id, call.body.immediate ?? false)
      return emptyResponse()
    },
  }),
]

function listCircuits({ controller, query }: Call): AnyCircuit[] {
  const filter: CircuitFilter = {
    ...(query.service === undefined ? {} : { serviceId: query.service as string }),
    ...(query.identity === undefined ? {} : { clientId: query.identity as string }),
    ...(query.router === undefined ? {} : { routerId: query.router as string }),
  }
  const { circuits, reports } = controller.fabric
  const own = circuits.list(filter)
  // Of circuits of an earlier process only the routers are known.
  const { serviceId, clientId, routerId } = filter
  if (serviceId !== undefined || clientId !== undefined) return own
  const inherited = reports.inherited.list()
  return [...own, ...inherited.filter(({ routerIds }) => routerId === undefined || routerIds.includes(routerId))]
}

function findCircuit({ controller: { fabric } }: Call, id: string): AnyCircuit | undefined {
  return fabric.circuits.get(id) ?? fabric.reports.inherited.list().find((circuit) => circuit.id === id)
}
