// Services on the management API: all of them, or as a certain identity sees them.
import { loadRoleBearer } from '../../src/access/role-bearers.ts'
import { getViewer, type Viewer } from '../../src/access/viewers.ts'
import type { Context } from '../../src/context.ts'
import { notFoundError } from '../../src/errors.ts'
import { configTypesQuery, presentServices, restrictToVisible } from '../both-apis/service-presentation.ts'
import type { Call } from '../operation.ts'
import type { OperationOverrides } from '../resource-operations.ts'

export const serviceOverrides: OperationOverrides = {
  // Of an identity that is unknown.
  errorStatuses: { list: [404] },
  query: {
    ...configTypesQuery,
    asIdentity: {
      schema: { type: 'string', description: 'The id or name of an identity: services as it sees them.' },
    },
  },
  presentation: async (call) => presentServices(call, await findViewer(call)),
  async restrict(call) {
    if (call.query.asIdentity === undefined) return []
    return restrictToVisible(call, await findViewer(call))
  },
}

async function findViewer({ controller, context, query }: Call): Promise<Viewer> {
  const asIdentity = query.asIdentity as string | undefined
  return asIdentity === undefined
    ? getViewer(controller.auth.apiSessions, context)
    : findNamedViewer(context, asIdentity)
}

/** The identity of that id, or else of that name. @throws NOT_FOUND */
async function findNamedViewer(context: Context, idOrName: string): Promise<Viewer> {
  const identity = (column: 'id' | 'name') =>
    context.db.selectFrom('identities').select(['id', 'isAdmin']).where(column, '=', idOrName).executeTakeFirst()
  const identityRow = (await identity('id')) ?? (await identity('name'))
  if (!identityRow) throw notFoundError('identity', idOrName)
  return { identity: await loadRoleBearer(context, identityRow.id), isAdmin: identityRow.isAdmin === 1 }
}
