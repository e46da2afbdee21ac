// How services are shown: through the eyes of an identity, with the configuration that was asked for.
import { attributesOfSession } from '../../src/access/attributes-of.ts'
import { knownConfigTypes } from '../../src/auth/open-session.ts'
import type { Context } from '../../src/context.ts'
import type { Attributed } from '../../src/policy/side.ts'
import type { Presentation } from '../../src/records/present.ts'
import type { Restriction } from '../../src/store/lists.ts'
import type { ServiceView } from '../../src/views/service-views.ts'
import type { Call, QueryParameter } from '../operation.ts'

/** Config types by id or name; several times over, or apart by commas. */
export const configTypesQuery: Readonly<Record<string, QueryParameter>> = {
  configTypes: {
    schema: { type: 'string', description: 'The id or name of a config type, or "all".' },
    isMultiple: true,
  },
}

/** Whose permissions, configuration and posture services are shown with. */
export interface Viewer {
  readonly identity: Attributed
  readonly isAdmin: boolean
}

/** Whoever calls; the controller's operator has no identity, and administers. */
export async function callingViewer(context: Context): Promise<Viewer> {
  const { caller } = context
  if (caller.kind !== 'identity') return { identity: { id: '', attributes: [] }, isAdmin: true }
  return { identity: await attributesOfSession(context, caller), isAdmin: caller.isAdmin }
}

/** The config types that a call asks for; without any, those that its session was opened with. */
async function wantedConfigTypes({ context, query }: Call): Promise<readonly string[]> {
  const asked = query.configTypes as readonly string[] | undefined
  if (asked)
    return knownConfigTypes(
      context,
      asked.flatMap((entry) => entry.split(',')),
    )
  const { caller, controller } = context
  const session = caller.kind === 'identity' ? controller.sessions.get(caller.apiSessionId) : undefined
  return session?.configTypes ?? []
}

/** Services as the viewer sees them. */
export async function servicePresentation(call: Call, isList: boolean, viewer: Viewer): Promise<Presentation> {
  const view: ServiceView = {
    ...viewer,
    configTypes: await wantedConfigTypes(call),
    emptyConfig: isList ? {} : null,
  }
  return { view }
}

/** What narrows a list to the services that a viewer sees: nothing for an administrator, for everybody else its policies. */
export function visibleServices({ controller }: Context, { identity, isAdmin }: Viewer): readonly Restriction[] {
  return isAdmin ? [] : [controller.access.scopes.servicesOf(identity)]
}
