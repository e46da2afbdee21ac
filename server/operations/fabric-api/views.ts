// From stored records to those of the fabric API.
import { routers } from '../../../src/definitions/resources/routers.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { terminators } from '../../../src/definitions/resources/terminators.ts'
import type { StoredView } from '../../responses/record-views.ts'
import { routerShape, serviceShape, terminatorShape } from './shapes.ts'

export const routerView: StoredView = {
  resource: routers,
  shape: routerShape,
  toRow: (row) => row,
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
