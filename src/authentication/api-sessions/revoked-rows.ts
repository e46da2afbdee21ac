// Lists of API sessions without those that were revoked: these are invisible at once, although their rows are deleted in steps.
//
// While they are deleted, a list tests the rows that it walks. The test counts its cost, so that a long walk goes to a thread.
import type { Kysely, SqlBool } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { Restriction } from '../../storage/lists/lists.ts'
import { joinConditions, type SqlText, sqlText } from '../../storage/lists/sql-text.ts'
import { getSqlDialect, type SqlDialect } from '../../storage/sql-dialect.ts'
import { toSignerAuthenticatorId } from '../sign-in/authentication-methods.ts'
import type { RevokedSessions } from './session-basis.ts'
import { queryRevocations } from './session-rows.ts'

/** The restriction of a list to sessions that are not revoked; none if the rows of all revocations are deleted. */
export async function excludeRevoked(db: Kysely<Database>): Promise<Restriction[]> {
  const revocations = await queryRevocations(db)
  if (revocations.length === 0) return []
  const dialect = getSqlDialect(db)
  const conditions = revocations.map(
    ({ newest, of }) => sqlText<SqlBool>`(api_sessions.n <= ${newest} and ${toCondition(dialect, of)})`,
  )
  const condition = sqlText<SqlBool>`(${joinConditions(conditions, 'or')}) is not true`
  return [{ condition, tables: ['identities'], cost: conditions.length * dialect.costs.ofTest.set }]
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
