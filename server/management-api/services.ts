// Services on the management API: all of them, or as a certain identity sees them.
import { attributesOf } from '../../src/access/attributes-of.ts'
import { callingViewer, type Viewer } from '../../src/access/viewers.ts'
import type { Context } from '../../src/context.ts'
import { notFound } from '../../src/errors.ts'
import { configTypesQuery, servicePresentation, visibleServices } from '../both-apis/service-presentation.ts'
import type { Call } from '../operation.ts'
import type { Differences } from '../resource-operations.ts'

export const serviceDifferences: Differences = {
  // Of an identity that is unknown.
  refusals: { list: [404] },
  query: {
    ...configTypesQuery,
    asIdentity: {
      schema: { type: 'string', description: 'The id or name of an identity: services as it sees them.' },
    },
  },
  presentation: async (call) => servicePresentation(call, await viewerOf(call)),
  async restrict(call) {
    if (call.query.asIdentity === undefined) return []
    return visibleServices(call.context, await viewerOf(call))
  },
}

async function viewerOf({ context, query }: Call): Promise<Viewer> {
  const asIdentity = query.asIdentity as string | undefined
  return asIdentity === undefined ? callingViewer(context) : namedViewer(context, asIdentity)
}

/** The identity of that id, or else of that name. @throws NOT_FOUND */
async function namedViewer(context: Context, idOrName: string): Promise<Viewer> {
  const identity = (column: 'id' | 'name') =>
    context.db.selectFrom('identities').select(['id', 'isAdmin']).where(column, '=', idOrName).executeTakeFirst()
  const found = (await identity('id')) ?? (await identity('name'))
  if (!found) throw notFound('identity', idOrName)
  return { identity: await attributesOf(context, found.id), isAdmin: found.isAdmin === 1 }
}
