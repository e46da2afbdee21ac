// From stored records to those of the fabric API.
import type { AnyRow } from '../../src/resources/define.ts'
import { type RouterInterface, routers } from '../../src/resources/routers.ts'
import { services } from '../../src/resources/services.ts'
import { terminators } from '../../src/resources/terminators.ts'
import type { StoredView } from '../record-views.ts'
import { type FabricInterface, routerShape, serviceShape, terminatorShape } from './shapes.ts'

export const routerView: StoredView = {
  resource: routers,
  shape: routerShape,
  toRow: (row) => ({ ...row, interfaces: toFabricInterfaces(row) }),
  computeFields({ id }, { routers: { connected } }) {
    const router = connected.get(id)
    if (!router) return { connected: false, listenerAddresses: null }
    const { linkListeners, version } = router.hello
    const listenerAddresses = linkListeners.map(({ address, protocol }) => ({ address, protocol }))
    return {
      connected: true,
      listenerAddresses: listenerAddresses.length > 0 ? listenerAddresses : null,
      versionInfo: version,
    }
  },
  listSymbols({ routers: { connected } }) {
    const common = { name: 'connected', type: 'boolean', column: 'id', member: 'connected', isNullable: false } as const
    return new Map([[common.name, { ...common, trueIds: connected.listIds() }]])
  },
}

export const serviceView: StoredView = { resource: services, shape: serviceShape, toRow: (row) => row }

export const terminatorView: StoredView = {
  resource: terminators,
  shape: terminatorShape,
  toRow: (row) => ({ ...row, instanceId: row.identity ?? '', hostId: row.hostId ?? '' }),
  computeFields: ({ id }, { routers: { network } }) => ({ dynamicCost: network.getDynamicCost(id) }),
}

// The bits of the flags of an interface, as routers report them: those of the package `net` of Go.
const FLAGS = { isUp: 1, isBroadcast: 2, isLoopback: 4, isMulticast: 16, isRunning: 32 } as const

function toFabricInterfaces({ interfaces }: AnyRow): string | null {
  if (typeof interfaces !== 'string') return null
  return JSON.stringify((JSON.parse(interfaces) as readonly RouterInterface[]).map(toFabricInterface))
}

function toFabricInterface({ flags, ...others }: RouterInterface): FabricInterface {
  const has = (flag: number) => (flags & flag) !== 0
  return {
    ...others,
    isUp: has(FLAGS.isUp),
    isBroadcast: has(FLAGS.isBroadcast),
    isLoopback: has(FLAGS.isLoopback),
    isMulticast: has(FLAGS.isMulticast),
    isRunning: has(FLAGS.isRunning),
  }
}
