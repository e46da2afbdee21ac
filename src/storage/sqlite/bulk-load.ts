// The loading of many rows into a new database: an index that is made at once costs a fraction of one that grows row by row.
import { openForWriting, type SqliteDatabase } from './connection.ts'
import { translateSqliteError } from './sqlite-errors.ts'
import { analyzeTables } from './statistics.ts'

/**
 * Drops the indexes that only make queries faster; those that keep values unique stay. Nothing else may have the database open.
 * @returns a function that makes them again and analyzes the tables, while nothing has the database open either
 */
export function dropIndexes(file: string): () => Promise<void> {
  const statements = withConnection(file, (connection) => {
    const indexes = connection
      .prepare("select name, sql from sqlite_schema where type = 'index' and sql like 'create index %' order by rowid")
      .all() as { name: string; sql: string }[]
    for (const { name } of indexes) connection.exec(`drop index "${name}"`)
    return indexes.map(({ sql }) => sql)
  })
  return async () => {
    const connection = openForWriting(file)
    try {
      for (const statement of statements) connection.exec(statement)
      await analyzeTables(connection, () => false)
    } catch (error) {
      throw translateSqliteError(error)
    } finally {
      connection.close()
    }
  }
}

function withConnection<T>(file: string, body: (connection: SqliteDatabase) => T): T {
  const connection = openForWriting(file)
  try {
    return body(connection)
  } catch (error) {
    throw translateSqliteError(error)
  } finally {
    connection.close()
  }
}
