// Checks the file of a database: its pages and indexes, the foreign keys of its tables, and the JSON in its columns.
import { compiledResources } from '../../definitions/model/index.ts'
import type { SqliteDatabase } from '../../storage/sqlite/connection.ts'
import type { Defect } from './defects.ts'

// The number of messages that SQLite may return: a damaged file can have any number of defects.
const MAX_PAGE_DEFECTS = 200

const INDEX_DEFECT = /^(?:row \d+ missing from|wrong # of entries in) index (\w+)$/

/** Checks every page, and that every index holds the rows of its table. */
export function* checkPages(connection: SqliteDatabase): Generator<Defect> {
  const rows = connection.pragma(`integrity_check(${MAX_PAGE_DEFECTS})`) as { integrity_check: string }[]
  for (const { integrity_check: description } of rows) {
    if (description === 'ok') continue
    const [, index] = INDEX_DEFECT.exec(description) ?? []
    yield { description, ...(index === undefined ? {} : { repair: { kind: 'rebuild-index', index } }) }
  }
}

/** Checks the foreign keys that no definition declares: `check-references.ts` checks the others, and knows how to repair them. */
export function* checkForeignKeys(connection: SqliteDatabase): Generator<Defect> {
  const declared = new Set(
    compiledResources.flatMap(({ definition, references }) =>
      references.map(({ column }) => `${definition.table}.${column}`),
    ),
  )
  const columnsByTable = new Map<string, ReadonlyMap<number, string>>()
  // All at once: while rows are iterated, the connection takes no other statement.
  const rows = connection.pragma('foreign_key_check') as ForeignKeyDefect[]
  for (const { table, rowid, parent, fkid } of rows) {
    const columns = columnsByTable.get(table) ?? listForeignKeys(connection, table)
    columnsByTable.set(table, columns)
    if (declared.has(`${table}.${columns.get(fkid)}`)) continue
    yield { description: `row ${rowid} of ${table} refers to a row of ${parent} that does not exist` }
  }
}

interface ForeignKeyDefect {
  readonly table: string
  readonly rowid: number
  readonly parent: string
  readonly fkid: number
}

/** The column of each foreign key of a table. */
function listForeignKeys(connection: SqliteDatabase, table: string): ReadonlyMap<number, string> {
  const rows = connection.pragma(`foreign_key_list("${table}")`) as { id: number; from: string }[]
  return new Map(rows.map(({ id, from }) => [id, from]))
}

const JSON_KINDS: ReadonlySet<string> = new Set(['json', 'object', 'set'])

/** Checks that the columns which hold JSON hold nothing else. */
export function* checkJson(connection: SqliteDatabase): Generator<Defect> {
  for (const { definition, fields } of compiledResources) {
    if (definition.subtypeOf) continue
    for (const { name, field } of fields) {
      if (!JSON_KINDS.has(field.kind.name)) continue
      const rows = connection
        .prepare(`select id from "${definition.table}" where "${name}" is not null and not json_valid("${name}")`)
        .pluck()
        .iterate() as Iterable<string>
      for (const id of rows) yield { description: `${name} of the ${definition.name} ${id} is not JSON` }
    }
  }
}
