// The registry: every operation of both APIs. What loops over operations loops over this.
import { resources } from '../src/resources/index.ts'
import { services } from '../src/resources/services.ts'
import { currentApiSessionOperations } from './both-apis/current-api-session.ts'
import { currentIdentityOperations } from './both-apis/current-identity.ts'
import { informationalOperations } from './both-apis/informational.ts'
import { enrollOperations } from './client-api/enroll.ts'
import { clientServiceOperations, configTypesQuery, ownServicePresentation } from './client-api/services.ts'
import type { AnyOperation } from './operation.ts'
import { type Differences, resourceOperations } from './resource-operations.ts'

/** Where the operations of a resource are not just what follows from it. */
const differences: Readonly<Record<string, Differences>> = {
  [services.plural]: { query: configTypesQuery, presentation: ownServicePresentation },
}

export const operations: readonly AnyOperation[] = [
  ...informationalOperations,
  ...currentApiSessionOperations,
  ...currentIdentityOperations,
  ...enrollOperations,
  ...clientServiceOperations,
  ...resources.flatMap((resource) => resourceOperations(resource, differences[resource.plural])),
]
