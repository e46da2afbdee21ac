// The links between routers: as routers report them, and what an administrator changes of them.

import { defineResource } from '../../../src/definitions/resources/define.ts'
import { linkSettings, STATIC_COST } from '../../../src/definitions/resources/link-settings.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { listOf, whole } from '../../../src/definitions/schema/json-schema.ts'
import { type Link, type LinkSettings, UNKNOWN_LATENCY_NS } from '../../../src/network/links/link.ts'
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

const states = ['connected', 'pending', 'unreachable', 'down'] as const
const { isDown, staticCost } = linkSettings.fields

const managementLinkShape = defineResource({
  name: 'link',
  plural: 'links',
  summary: 'A connection between two routers.',
  fields: {
    sourceId: f.reference('routers', {
      as: 'sourceRouter',
      access: 'read',
      filter: true,
      summary: 'The router that dialed it.',
    }),
    destinationId: f.reference('routers', { as: 'destinationRouter', access: 'read', filter: true }),
    protocol: f.text({ access: 'read', filter: true }),
    dialAddress: f.text({ access: 'read', filter: true }),
    state: f.choice(states, {
      access: 'read',
      filter: true,
      summary:
        'Only connected links are used by new circuits. pending: reported just now, or not again since its router reconnected. unreachable: one of its routers is offline. down: an administrator set it down.',
    }),
    cost: f.int({
      min: 0,
      max: 10_000_000,
      access: 'read',
      filter: true,
      summary: 'What a path pays for it: its static cost and the milliseconds of both latencies.',
    }),
    isDown,
    staticCost,
    iteration: f.int({
      min: 0,
      max: 4_294_967_295,
      access: 'read',
      filter: true,
      summary: 'How many times its router has dialed it.',
    }),
  },
  computed: {
    sourceLatency: { ...whole, nullable: true, description: 'Nanoseconds; null until the router has measured it.' },
    destinationLatency: {
      ...whole,
      nullable: true,
      description: 'Nanoseconds; null until the router has measured it.',
    },
  },
  columns: ['id', 'sourceRouter', 'destinationRouter', 'protocol', 'state', 'cost'],
  example: { create: {}, filter: 'state != "connected"' },
})

/** A link, and whether paths use it. */
interface LinkItem {
  readonly link: Link
  readonly state: (typeof states)[number]
}

const linkView: RecordView<LinkItem> = {
  shape: managementLinkShape,
  toRow: ({ link: { reportedAt, changedAt, isDown, ...link }, state }) => ({
    ...link,
    isDown: isDown ? 1 : 0,
    state,
    createdAt: reportedAt,
    updatedAt: changedAt,
    tags: '{}',
  }),
  computeFields: ({ link: { sourceLatencyNs, destinationLatencyNs } }) => ({
    sourceLatency: toMeasured(sourceLatencyNs),
    destinationLatency: toMeasured(destinationLatencyNs),
  }),
}

const toMeasured = (latencyNs: number) => (latencyNs === UNKNOWN_LATENCY_NS ? null : latencyNs)

const compiled = new CompiledView(linkView)
const itemSchema = {
  ...compiled.schema,
  'x-columns': managementLinkShape.columns,
  'x-example-filter': managementLinkShape.example.filter,
}

const COMMON = { apis: ['management'], isOwn: true, topic: 'links' } as const
const grant = (right: string) => ({ permission: `link.${right}`, grantedTo: 'administrator' }) as const

export const linkOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listLinks',
    needsRouters: true,
    method: 'GET',
    path: '/controller/links',
    summary: 'Lists the links between routers.',
    access: grant('read'),
    query: listQuery,
    returns: { kind: 'data', schema: listOf(itemSchema), isPage: true },
    run(call) {
      const items = call.controller.fabric.links.list().map((link) => toItem(call, link))
      return respondWithMemoryList(call, compiled, items)
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailLink',
    needsRouters: true,
    method: 'GET',
    path: '/controller/links/:id',
    summary: 'Shows one link.',
    access: grant('read'),
    returns: { kind: 'data', schema: compiled.schema },
    run: (call) => respondWithView(call, compiled, requireLink(call)),
  }),
  defineOperation<Partial<LinkSettings>>({
    ...COMMON,
    id: 'patchLink',
    needsRouters: true,
    method: 'PATCH',
    path: '/controller/links/:id',
    summary:
      'Sets the cost of a link, or sets it down: its circuits move to other paths. Both hold for the links between these routers at this address, also after restarts.',
    access: grant('update'),
    body: readFieldsBody<Partial<LinkSettings>>(
      {
        isDown: f.bool({ summary: 'Whether no path may use the link.' }),
        staticCost: f.int({ ...STATIC_COST, summary: 'What the link costs besides its latency.' }),
      },
      { purpose: 'patch' },
    ),
    returns: { kind: 'empty' },
    async run(call) {
      const { link } = requireLink(call)
      await call.controller.fabric.linkSettings.change(call.context, link, call.body)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteLink',
    needsRouters: true,
    method: 'DELETE',
    path: '/controller/links/:id',
    summary: 'Ends a link. The router that dialed it may dial again; to keep it from being used, set it down.',
    access: grant('delete'),
    returns: { kind: 'empty' },
    run(call) {
      const { link } = requireLink(call)
      call.controller.fabric.links.remove(link.id)
      return emptyResponse()
    },
  }),
]

/** @throws NOT_FOUND */
function requireLink(call: Call): LinkItem {
  const { id = '' } = call.params
  const link = call.controller.fabric.links.get(id)
  return requireItem(compiled, id, link && toItem(call, link))
}

function toItem({ controller }: Call, link: Link): LinkItem {
  const { links } = controller.fabric
  if (link.isDown) return { link, state: 'down' }
  if (links.isUsable(link)) return { link, state: 'connected' }
  return { link, state: links.hasOfflineEnd(link) ? 'unreachable' : 'pending' }
}
