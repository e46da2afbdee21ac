// Circuits on the fabric API: the list, one of them, and its end.

import type { Circuit } from '../../../src/network/circuits/circuit-table.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { emptyResponse } from '../../api/responses.ts'
import { requireItem } from '../../responses/record-views.ts'
import { circuitDeletionBody } from '../management-api/circuits.ts'
import { circuitShape } from './shapes.ts'
import { compileFabricView, FABRIC, type MemoryView, makeMemoryOperations } from './view-operations.ts'

const circuitView: MemoryView<Circuit> = {
  shape: circuitShape,
  toRow: ({ id, createdAt, updatedAt, sessionId, serviceId, terminatorId }) => ({
    id,
    createdAt,
    updatedAt,
    tags: '{}',
    clientId: sessionId,
    serviceId,
    terminatorId,
  }),
  listShown: ({ path }) => ({ routers: path.routerIds }),
  computeFields: ({ path }, _controller, show) => ({
    path: {
      nodes: path.routerIds.map((id) => show('routers', id)),
      links: path.links.length > 0 ? path.links.map(({ id }) => show('links', id)) : null,
    },
  }),
  listItems: ({ controller }) => controller.fabric.circuits.list(),
  findItem: ({ controller }, id) => controller.fabric.circuits.get(id),
}

const compiled = compileFabricView(circuitView)

export const circuitOperations: readonly AnyOperation[] = [
  ...makeMemoryOperations(circuitView, compiled),
  defineOperation<{ readonly immediate?: boolean }>({
    ...FABRIC,
    id: 'deleteCircuit',
    needsRouters: true,
    topic: circuitShape.plural,
    method: 'DELETE',
    path: '/circuits/:id',
    summary: 'Ends one circuit at its routers.',
    access: { permission: 'circuit.delete', grantedTo: 'administrator' },
    body: circuitDeletionBody,
    returns: { kind: 'empty' },
    run({ controller, params: { id = '' }, body }) {
      const { circuits, circuitDeletion } = controller.fabric
      requireItem(compiled, id, circuits.get(id))
      circuitDeletion.end(id, body.immediate ?? false)
      return emptyResponse()
    },
  }),
]
