// Lists without API sessions that were revoked, and what belongs to them: invisible at once, although their rows are deleted in steps.
//
// While they are deleted, a list tests the rows that it walks. The test counts its cost, so that a long walk goes to a thread.
import type { Kysely, SqlBool } from 'kysely'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Database } from '../../storage/database.ts'
import { countRecords } from '../../storage/lists/count-records.ts'
import { planList } from '../../storage/lists/list-plan.ts'
import { list, type RestrictingCondition, type Restriction } from '../../storage/lists/lists.ts'
import { joinConditions, type SqlText, sqlText } from '../../storage/lists/sql-text.ts'
import { getSqlDialect, type SqlDialect } from '../../storage/sql-dialect.ts'
import type { Store } from '../../storage/store.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { toSignerAuthenticatorId } from '../sign-in/authentication-methods.ts'
import type { RevokedSessions } from './session-basis.ts'
import { queryRevocations } from './session-rows.ts'

/** The restriction of a list to API sessions that are not revoked; none if the rows of all revocations are deleted. */
export async function excludeRevoked(db: Kysely<Database>): Promise<Restriction[]> {
  const revoked = await findRevoked(db)
  return revoked ? [{ ...revoked, condition: sqlText<SqlBool>`(${revoked.condition}) is not true` }] : []
}

/** The same for service sessions, which end with their API session. */
export async function excludeOfRevoked(db: Kysely<Database>): Promise<Restriction[]> {
  const revoked = await findRevoked(db)
  if (!revoked) return []
  const condition = sqlText<SqlBool>`not exists
    (select 1 from api_sessions where api_sessions.id = sessions."apiSessionId" and (${revoked.condition}))`
  return [
    { condition, tables: ['api_sessions', ...revoked.tables], cost: revoked.cost + getSqlDialect(db).costs.ofTest.set },
  ]
}

/** The condition of API sessions that were revoked. It is null of some of the others. */
async function findRevoked(db: Kysely<Database>): Promise<RestrictingCondition | undefined> {
  const revocations = await queryRevocations(db)
  if (revocations.length === 0) return undefined
  const dialect = getSqlDialect(db)
  const conditions = revocations.map(
    ({ newest, of }) => sqlText<SqlBool>`(api_sessions.n <= ${newest} and ${toCondition(dialect, of)})`,
  )
  const cost = conditions.length * dialect.costs.ofTest.set
  return { condition: joinConditions(conditions, 'or'), tables: ['identities'], cost }
}

/** The condition of the rows that `isAmong` is true of. It is null of some of the others. */
function toCondition(dialect: SqlDialect, of: RevokedSessions): SqlText<SqlBool> {
  const column = (name: string) => sqlText.ref(`api_sessions.${name}`)
  const isOtherThan = (name: string, values: readonly string[] = []) =>
    sqlText<SqlBool>`not ${dialect.isOneOf(sqlText`coalesce(${column(name)}, '')`, values)}`
  if ('caId' in of) {
    const isOfAuthority = sqlText<SqlBool>`${column('caId')} = ${of.caId}`
    return of.isByClaim ? sqlText<SqlBool>`${isOfAuthority} and ${column('externalId')} is not null` : isOfAuthority
  }
  if ('signerId' in of) {
    const id = toSignerAuthenticatorId(of.signerId)
    return sqlText<SqlBool>`${column('authenticatorId')} = ${id} and ${isOtherThan('signerKey', of.exceptKeys)}`
  }
  const exceptIds = of.exceptSigners?.map(toSignerAuthenticatorId)
  return sqlText<SqlBool>`${column('method')} = ${of.method} and ${isOtherThan('authenticatorId', exceptIds)} and exists
    (select 1 from identities where id = ${column('identityId')} and ${sqlText.ref('identities.authPolicyId')} = ${of.authPolicyId})`
}

/** The number of records of a resource that are shown: no service sessions of revoked API sessions. */
export async function countShownRecords(store: Store, context: Context, plural: string): Promise<number> {
  const restrictions = plural === sessions.plural ? await excludeOfRevoked(context.db) : []
  if (restrictions.length === 0) return countRecords(store, context, plural)
  return (await list(store, context, { resource: sessions, plan: planList({}, 1), restrictions })).total
}
