// Presents services as an identity sees them, with the data of the requested config types.

import type { ServiceView } from '../../../src/access/services/service-behavior.ts'
import type { Viewer } from '../../../src/access/viewers.ts'
import { resolveConfigTypes } from '../../../src/authentication/api-sessions/create-api-session.ts'
import type { Restriction } from '../../../src/storage/lists/lists.ts'
import type { Presentation } from '../../../src/storage/records/presentation.ts'
import type { Call, QueryParameter } from '../../api/operation.ts'

/** Config types by id or name; repeated, or separated by commas. */
export const configTypesQuery: Readonly<Record<string, QueryParameter>> = {
  configTypes: {
    schema: { type: 'string', description: 'The id or name of a config type, or "all".' },
    isMultiple: true,
  },
}

/** Returns the config types of a call; defaults to those of its session. */
export async function readConfigTypes({ controller, context, query }: Call): Promise<readonly string[]> {
  const requestedTypes = query.configTypes as readonly string[] | undefined
  if (requestedTypes)
    return resolveConfigTypes(
      context,
      requestedTypes.flatMap((entry) => entry.split(',')),
    )
  const { caller } = context
  const session = caller.kind === 'identity' ? controller.auth.apiSessions.get(caller.apiSessionId) : undefined
  return session?.configTypes ?? []
}

/** Services as the viewer sees them. */
export async function presentServices(call: Call, viewer: Viewer): Promise<Presentation> {
  return presentWithConfigs(viewer, await readConfigTypes(call))
}

/** The same, with the data of these config types. */
export function presentWithConfigs(viewer: Viewer, configTypes: readonly string[]): Presentation {
  const view: ServiceView = { viewer, configTypes }
  return { view }
}

/** Restricts a list to the services that a viewer sees: all for an administrator, else those that its policies grant. */
export function restrictToVisible(
  { controller }: Pick<Call, 'controller'>,
  { identity, isAdmin }: Viewer,
): readonly Restriction[] {
  return isAdmin ? [] : [controller.access.scopes.toServicesScope(identity)]
}
