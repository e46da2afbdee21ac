// Checks that the tables by which lists are filtered hold the members of the sets that records have, and no others.
import { compiledResources } from '../../definitions/model/index.ts'
import type { SqliteDatabase } from '../../storage/sqlite/connection.ts'
import type { Defect } from './defects.ts'

/** A member that is in one of the two places only. */
interface DifferentMember {
  readonly n: number
  /** Null if the record does not exist. */
  readonly id: string | null
  readonly value: string
}

export function* checkSets(connection: SqliteDatabase): Generator<Defect> {
  for (const { definition, sets } of compiledResources) {
    const { table, plural, subtypeOf } = definition
    const isKind = subtypeOf ? ` and r."${subtypeOf.discriminator}" = 1` : ''
    for (const { field, table: members } of sets) {
      const membersOfRecord = `json_each(iif(json_valid(r."${field}"), r."${field}", '[]')) j`
      const missing = `select r.n, r.id, j.value from "${table}" r, ${membersOfRecord}
        where not exists (select 1 from "${members}" s where s.value = j.value and s.n = r.n)${isKind} order by r.n`
      const surplus = `select s.n, r.id, s.value from "${members}" s left join "${table}" r on r.n = s.n
        where r.n is null or not exists (select 1 from ${membersOfRecord} where j.value = s.value) order by s.n`
      const noun = definition.name.replaceAll('-', ' ')
      const toDefect = (difference: string, { n, id, value }: DifferentMember): Defect => ({
        description: `${field} of ${id === null ? `a ${noun} that does not exist` : `the ${noun} ${id}`} ${difference} ${value}`,
        repair: { kind: 'rewrite-members', resource: plural, field, n },
      })
      for (const row of iterate(connection, missing)) yield toDefect('cannot be filtered by', row)
      for (const row of iterate(connection, surplus)) yield toDefect('does not contain, and is filtered by,', row)
    }
  }
}

function iterate(connection: SqliteDatabase, query: string): Iterable<DifferentMember> {
  return connection.prepare(query).iterate() as Iterable<DifferentMember>
}
