// The registry: every operation of both APIs. What loops over operations loops over this.

import { apiSessions } from '../src/resources/api-sessions.ts'
import { resources } from '../src/resources/index.ts'
import { services } from '../src/resources/services.ts'
import { authenticationOperations } from './both-apis/authentication.ts'
import { currentApiSessionOperations } from './both-apis/current-api-session.ts'
import { currentIdentityOperations } from './both-apis/current-identity.ts'
import { informationalOperations } from './both-apis/informational.ts'
import { networkTrustOperations } from './both-apis/network-trust.ts'
import { ownAuthenticatorOperations } from './both-apis/own-authenticators.ts'
import { enrollOperations } from './client-api/enroll.ts'
import { clientServiceOperations, configTypesQuery, ownServicePresentation } from './client-api/services.ts'
import { apiSessionOperations } from './management-api/api-sessions.ts'
import { authenticatorOperations } from './management-api/authenticators.ts'
import { enrollmentOperations } from './management-api/enrollments.ts'
import type { AnyOperation } from './operation.ts'
import { type Differences, resourceOperations } from './resource-operations.ts'

/** Where the operations of a resource are not just what follows from it. */
const differences: Readonly<Record<string, Differences>> = {
  // Not for administrators alone: `management-api/api-sessions.ts`.
  [apiSessions.plural]: { verbs: [] },
  [services.plural]: { query: configTypesQuery, presentation: ownServicePresentation },
}

export const operations: readonly AnyOperation[] = [
  ...informationalOperations,
  ...authenticationOperations,
  ...currentApiSessionOperations,
  ...currentIdentityOperations,
  ...ownAuthenticatorOperations,
  ...networkTrustOperations,
  ...enrollOperations,
  ...clientServiceOperations,
  ...apiSessionOperations,
  ...authenticatorOperations,
  ...enrollmentOperations,
  ...resources.flatMap((resource) => resourceOperations(resource, differences[resource.plural])),
]
