// Clients whose posture routers of release 2 do not know: those with OpenZiti's C SDK that signed in by OpenID Connect.
//
// A session by OpenID Connect is judged by the router, which knows only what clients report to it. That SDK reports to the
// controller alone, so that such a router refuses it every service with posture checks, whatever the controller knows.
import { sql } from 'kysely'
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { supportsOidc } from '../router-releases.ts'

const C_SDK = 'ziti-sdk-c'

export const LEGACY_SIGN_IN_HINT =
  'start that client with ZITI_FORCE_LEGACY_AUTH=true in its environment (C SDK 1.14 or later), or set oidc.announce to never'

type ReadingContext = Pick<Context, 'db'>

/** The identities with such a session, at most `limit` of them; of these alone if ids are given. */
export async function findUnreportedClients(
  context: ReadingContext,
  limit: number,
  identityId?: string,
): Promise<{ readonly id: string; readonly name: string; readonly roleAttributes: string }[]> {
  if (!(await hasJudgingRouter(context))) return []
  return context.db
    .selectFrom('identities')
    .select(['id', 'name', 'roleAttributes'])
    .where('id', 'in', (query) => {
      const sessions = query.selectFrom('api_sessions').select('identityId').where('clientId', 'is not', null)
      return identityId === undefined ? sessions : sessions.where('identityId', '=', identityId)
    })
    .where(sql<boolean>`json_extract(${sql.ref('sdkInfo')}, '$.type') = ${C_SDK}`)
    .orderBy('name')
    .limit(limit)
    .execute()
}

/** Whether any enrolled edge router judges sessions by itself. */
async function hasJudgingRouter({ db }: ReadingContext): Promise<boolean> {
  const rows = await db
    .selectFrom('routers')
    .select('lastVersion')
    .where('isVerified', '=', 1)
    .where('isEdge', '=', 1)
    .execute()
  return rows.some(({ lastVersion }) => lastVersion !== null && supportsOidc(JSON.parse(lastVersion) as VersionInfo))
}
