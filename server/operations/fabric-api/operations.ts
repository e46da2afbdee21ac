// Every operation of the fabric API, which tools of operators use.
import type { AnyOperation } from '../../api/operation.ts'
import { circuitOperations } from './circuits.ts'
import { clusterOperations } from './cluster.ts'
import { eventChannelOperations } from './event-channel.ts'
import { inspectionOperations } from './inspections.ts'
import { fabricLinkOperations } from './links.ts'
import { routerChangeOperations } from './router-changes.ts'
import { serviceChangeOperations } from './service-changes.ts'
import { snapshotOperations } from './snapshots.ts'
import { terminatorChangeOperations } from './terminator-changes.ts'
import { compileFabricView, makeStoredOperations, makeSubListOperation } from './view-operations.ts'
import { routerView, serviceView, terminatorView } from './views.ts'

const compiledTerminators = compileFabricView(terminatorView)

export const fabricOperations: readonly AnyOperation[] = [
  ...makeStoredOperations(routerView, compileFabricView(routerView)),
  ...makeStoredOperations(serviceView, compileFabricView(serviceView)),
  ...makeStoredOperations(terminatorView, compiledTerminators),
  makeSubListOperation(routerView, terminatorView, compiledTerminators, 'routerId'),
  makeSubListOperation(serviceView, terminatorView, compiledTerminators, 'serviceId'),
  ...terminatorChangeOperations,
  ...fabricLinkOperations,
  ...circuitOperations,
  ...serviceChangeOperations,
  ...routerChangeOperations,
  ...snapshotOperations,
  ...clusterOperations,
  ...inspectionOperations,
  ...eventChannelOperations,
]
