// The controllers of the network as they run: how far each has followed the log, what it does for all, and its draining before a stop.

import { controllers } from '../../../src/definitions/resources/controllers.ts'
import { listOf, requiredObject, text, time, whole } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { errors } from '../../../src/foundation/errors.ts'
import { version } from '../../../src/foundation/version.ts'
import { getAdvertisedAddress } from '../../../src/settings/addresses.ts'
import { splitAddress } from '../../../src/settings/setting-types.ts'
import { CLUSTER_CHANGE } from '../../../src/storage/audit/audit.ts'
import type { Cluster } from '../../../src/storage/cluster/cluster.ts'
import { listNodeStates, type NodeState, nodeStates } from '../../../src/storage/cluster/node-states.ts'
import { isOneOf } from '../../../src/storage/untyped.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'

const COMMON = { apis: ['management'], topic: 'nodes', isOwn: true } as const
const UPDATE = { permission: 'node.update', grantedTo: 'administrator' } as const

const nodeSchema = {
  ...requiredObject({
    name: text,
    state: {
      ...text,
      enum: nodeStates,
      description:
        'waiting: it waits until controllers of older releases stop. live: it runs. draining: it gives up what it does. drained: nothing is left to do, and it can be stopped. silent: it has not ended, but is not in contact. stopped: it has ended.',
    },
    version: text,
    address: text,
    position: { ...whole, description: 'The commit up to which it has followed the log.' },
    behind: { ...whole, description: 'How many commits it lacks.' },
    duties: { ...listOf(text), description: 'What it does for all controllers: fabric (the routers), timers.' },
    routers: { ...whole, description: 'How many routers are connected to it.' },
    routerNames: {
      ...listOf(text),
      description: 'The routers that are connected to it, as far as this controller knows.',
    },
    connections: { ...whole, description: 'How many connections clients have with it.' },
    lastContactAt: {
      ...time,
      description: 'When it was in contact with the log last, by the clock of this controller.',
    },
    startedAt: time,
  }),
  'x-columns': ['name', 'state', 'version', 'address', 'position', 'behind', 'duties', 'routerNames', 'lastContactAt'],
}

export const nodeOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listNodes',
    method: 'GET',
    path: '/controller/nodes',
    summary: 'Lists the controllers of the network: which run, how far each has followed, and what it does for all.',
    access: { permission: 'node.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: { type: 'array', items: nodeSchema } },
    // Also while the log is out of reach, when it is needed most.
    grantsNothing: 'it tells how the controllers run',
    run: async (call) => dataResponse(await listNodes(call)),
  }),
  defineOperation({
    ...COMMON,
    id: 'drainNode',
    method: 'POST',
    path: '/controller/nodes/:name/drain',
    summary:
      'Has a controller give up what it does for all, and be unhealthy to load balancers, so that it can be stopped unnoticed. Its next start ends it.',
    access: UPDATE,
    returns: { kind: 'empty' },
    errorStatuses: [404, 409],
    run: (call) => setDraining(call, true),
  }),
  defineOperation({
    ...COMMON,
    id: 'resumeNode',
    method: 'POST',
    path: '/controller/nodes/:name/resume',
    summary: 'Ends the draining of a controller.',
    access: UPDATE,
    returns: { kind: 'empty' },
    errorStatuses: [404, 409],
    run: (call) => setDraining(call, false),
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteNode',
    method: 'DELETE',
    path: '/controller/nodes/:name',
    summary:
      'Removes a controller that is gone for ever from the list. One that has left by controller cluster leave is removed already.',
    access: { permission: 'node.delete', grantedTo: 'administrator' },
    returns: { kind: 'empty' },
    errorStatuses: [404, 409],
    run: removeNode,
  }),
]

async function listNodes({ controller }: Call) {
  const { clock, cluster, routers } = controller
  if (!cluster) return [await describeSelf(controller)]
  // If the log is out of reach, the list is that of the last contact.
  await cluster.nodes.refresh().catch(() => undefined)
  const nodes = listNodeStates(cluster.nodes).map((node) => {
    return { node, ids: routers.presence?.listRouterIdsOf(node.name) ?? [] }
  })
  const nameRouters = await readRouterNames(
    controller,
    nodes.flatMap(({ ids }) => ids),
  )
  return nodes.map(({ node, ids }) => toRecord(node, clock.now(), nameRouters(ids)))
}

/** Reads the names of routers once. Returns a function for those of some: in order, and the id of one whose record this controller does not know. */
async function readRouterNames({ store: { db } }: Call['controller'], ids: readonly string[]) {
  const rows = await db
    .selectFrom('routers')
    .select(['id', 'name'])
    .where(isOneOf(db, 'id', ids))
    .execute()
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  return (some: readonly string[]) => some.map((id) => names.get(id) ?? id).sort()
}

function toRecord(
  { duties, details, silentMs, startedAt, ...node }: NodeState,
  now: number,
  routerNames: readonly string[],
) {
  const { name, state, version: release, address, position, behind } = node
  return {
    ...{ name, state, version: release, address, position, behind, duties },
    routers: details.routers ?? 0,
    routerNames,
    connections: details.connections ?? 0,
    lastContactAt: toIsoTime(now - Math.round(silentMs)),
    startedAt: toIsoTime(Math.round(startedAt)),
  }
}

/** A controller that is alone. */
async function describeSelf(controller: Call['controller']) {
  const { clock, config, routers, startedAt, store } = controller
  const ids = routers.connected.listIds()
  const nameRouters = await readRouterNames(controller, ids)
  const address = getAdvertisedAddress(config)
  return {
    ...{ name: splitAddress(address).host, state: 'live', version: version.version, address },
    ...{ position: store.position, behind: 0, duties: [], connections: 0 },
    ...{ routers: ids.length, routerNames: nameRouters(ids) },
    ...{ lastContactAt: toIsoTime(clock.now()), startedAt: toIsoTime(startedAt) },
  }
}

async function setDraining({ controller, context, params }: Call, isDraining: boolean) {
  const { nodes } = requireCluster(controller)
  const { name = '' } = params
  const node = nodes.list().find((other) => other.name === name)
  if (!node) throw unknownNodeError(name)
  const at = context.clock.now()
  await context.write(async ({ record }) => {
    const values = { before: { name, isDraining: node.isDraining }, after: { name, isDraining } }
    record({ ...CLUSTER_CHANGE, operation: 'update', audit: 'values', isAuditOnly: true, id: name, at, ...values })
  })
  if (!(await nodes.drain(name, isDraining))) throw unknownNodeError(name)
  return emptyResponse()
}

async function removeNode({ controller, context, params }: Call) {
  const { contexts, entities } = controller
  const { nodes } = requireCluster(controller)
  const { name = '' } = params
  await nodes.refresh()
  const node = nodes.list().find((other) => other.name === name)
  const listIds = async ({ db }: Pick<Call['context'], 'db'>) => {
    const records = await db.selectFrom('controllers').select('id').where('node', '=', name).execute()
    return records.map(({ id }) => id)
  }
  // A restored backup may have the record of one that has left since.
  if (!node && (await listIds(context)).length === 0) throw unknownNodeError(name)
  if (node && (node.isLive || !(await nodes.remove(name))))
    throw errors.CONTROLLER_RUNS({ message: `${name} is in contact with the log: stop it first` })
  await context.write(async (tx) => {
    await entities.removeAllIn(tx, controllers, await listIds(tx), 'none')
  })
  await contexts.recordEvent(context.caller, context.origin, { ...CLUSTER_CHANGE, operation: 'delete', id: name })
  return emptyResponse()
}

/** @throws CONTROLLER_ALONE */
function requireCluster({ cluster }: Call['controller']): Cluster {
  if (cluster) return cluster
  throw errors.CONTROLLER_ALONE({ message: 'controller cluster init makes it the first of several' })
}

function unknownNodeError(name: string) {
  return errors.NOT_FOUND({ message: `there is no controller of the name ${name}` })
}
