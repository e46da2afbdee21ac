// Links on the fabric API: the list, one of them, its cost, and its end.

import { compileBodyShapes } from '../../../src/definitions/model/body-shapes.ts'
import type { Link, LinkSettings } from '../../../src/network/links/link.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { emptyResponse } from '../../api/responses.ts'
import { requireItem } from '../../responses/record-views.ts'
import { linkShape } from './shapes.ts'
import { compileFabricView, FABRIC, type MemoryView, makeMemoryOperations, readShapeBody } from './view-operations.ts'

const linkView: MemoryView<Link> = {
  shape: linkShape,
  toRow: (link) => ({
    id: link.id,
    protocol: link.protocol,
    dialAddress: link.dialAddress,
    sourceRouterId: link.sourceId,
    destRouterId: link.destinationId,
    state: link.state,
    down: link.isDown ? 1 : 0,
    staticCost: link.staticCost,
    sourceLatency: link.sourceLatencyNs,
    destLatency: link.destinationLatencyNs,
    cost: link.cost,
    iteration: link.iteration,
  }),
  listItems: ({ controller }) => controller.fabric.links.list(),
  findItem: ({ controller }, id) => controller.fabric.links.get(id),
}

const compiled = compileFabricView(linkView)
const common = { ...FABRIC, topic: linkShape.plural } as const

/** The body of a change, by the names of the shape. */
interface LinkChange {
  readonly down?: boolean
  readonly staticCost?: number
}

export const fabricLinkOperations: readonly AnyOperation[] = [
  ...makeMemoryOperations(linkView, compiled),
  defineOperation<LinkChange>({
    ...common,
    id: 'patchLink',
    needsRouters: true,
    method: 'PATCH',
    path: '/links/:id',
    summary: 'Changes what one link costs, or keeps paths from using it.',
    access: { permission: 'link.update', grantedTo: 'administrator' },
    body: readShapeBody<LinkChange>(compileBodyShapes(linkShape), 'patch'),
    returns: { kind: 'empty' },
    async run({ controller: { fabric }, context, params: { id = '' }, body: { down, staticCost } }) {
      const link = requireItem(compiled, id, fabric.links.get(id))
      const changes: Partial<LinkSettings> = {
        ...(down === undefined ? {} : { isDown: down }),
        ...(staticCost === undefined ? {} : { staticCost }),
      }
      await fabric.linkSettings.change(context, link, changes)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...common,
    id: 'deleteLink',
    needsRouters: true,
    method: 'DELETE',
    path: '/links/:id',
    summary: 'Removes one link at both of its routers. The router that dialed it may dial again.',
    access: { permission: 'link.delete', grantedTo: 'administrator' },
    returns: { kind: 'empty' },
    run({ controller: { fabric }, params: { id = '' } }) {
      fabric.links.remove(requireItem(compiled, id, fabric.links.get(id)).id)
      return emptyResponse()
    },
  }),
]
