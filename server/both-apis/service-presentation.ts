// How services are shown: through the eyes of an identity, with the configuration that was asked for.
import type { Viewer } from '../../src/access/viewers.ts'
import { resolveConfigTypes } from '../../src/auth/create-api-session.ts'
import type { Context } from '../../src/context.ts'
import type { Presentation } from '../../src/records/presentation.ts'
import type { ServiceView } from '../../src/services/service-behavior.ts'
import type { Restriction } from '../../src/store/lists.ts'
import type { Call, QueryParameter } from '../operation.ts'

/** Config types by id or name; several times over, or apart by commas. */
export const configTypesQuery: Readonly<Record<string, QueryParameter>> = {
  configTypes: {
    schema: { type: 'string', description: 'The id or name of a config type, or "all".' },
    isMultiple: true,
  },
}

/** The config types that a call asks for; without any, those that its session was opened with. */
async function readConfigTypes({ context, query }: Call): Promise<readonly string[]> {
  const asked = query.configTypes as readonly string[] | undefined
  if (asked)
    return resolveConfigTypes(
      context,
      asked.flatMap((entry) => entry.split(',')),
    )
  const { caller, controller } = context
  const session = caller.kind === 'identity' ? controller.sessions.get(caller.apiSessionId) : undefined
  return session?.configTypes ?? []
}

/** Services as the viewer sees them. */
export async function presentServices(call: Call, viewer: Viewer): Promise<Presentation> {
  const view: ServiceView = { viewer, configTypes: await readConfigTypes(call) }
  return { view }
}

/** What narrows a list to the services that a viewer sees: nothing for an administrator, for everybody else its policies. */
export function restrictToVisible({ controller }: Context, { identity, isAdmin }: Viewer): readonly Restriction[] {
  return isAdmin ? [] : [controller.access.scopes.servicesOf(identity)]
}
