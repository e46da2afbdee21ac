// Services on the management API: all of them, or those that one identity sees.
import { loadRoleBearer } from '../../../src/access/role-bearers.ts'
import { getViewer, type Viewer } from '../../../src/access/viewers.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import type { Call } from '../../api/operation.ts'
import { configTypesQuery, presentServices, restrictToVisible } from '../both-apis/service-presentation.ts'
import type { OperationOverrides } from '../resource-operations.ts'

export const serviceOverrides: OperationOverrides = {
  // For an unknown identity.
  errorStatuses: { list: [404] },
  query: {
    ...configTypesQuery,
    asIdentity: {
      schema: { type: 'string', description: 'The id or name of an identity, to show services as it sees them.' },
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

/** Finds an identity by its id, or else by its name. @throws NOT_FOUND */
async function findNamedViewer(context: Context, idOrName: string): Promise<Viewer> {
  const findBy = (column: 'id' | 'name') =>
    context.db.selectFrom('identities').select(['id', 'isAdmin']).where(column, '=', idOrName).executeTakeFirst()
  const identityRow = (await findBy('id')) ?? (await findBy('name'))
  if (!identityRow) throw notFoundError('identity', idOrName)
  return { identity: await loadRoleBearer(context, identityRow.id), isAdmin: identityRow.isAdmin === 1 }
}
