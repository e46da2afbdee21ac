// Reads from a database that is not in use which log its rows follow, and how far.
import type { LogStart } from '../postgres/log-tables.ts'
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'

/** The place in the log to which the rows of a database have been led; `network` is empty if the controller is alone. */
export function readLogStart(file: string): LogStart {
  return within(openForReading(file), (connection) => {
    const last = connection.prepare('select position, chain, network from commit_position').get()
    const schema = connection
      .prepare('select name as migration, schema as digest, version as release from migrations order by name desc')
      .get()
    return { ...(last as Omit<LogStart, 'schema'>), schema: schema as LogStart['schema'] }
  })
}

/** Makes the rows of a database those of a network that several controllers serve; of none if `network` is empty. */
export function setNetwork(file: string, network: string): void {
  within(openForWriting(file), (connection) =>
    connection.prepare('update commit_position set network = ?').run(network),
  )
}

/** Makes the rows of a database begin a chain of their own, to which no commit has led. */
export function setChain(file: string, chain: string): void {
  within(openForWriting(file), (connection) => connection.prepare('update commit_position set chain = ?').run(chain))
}

function within<T>(connection: SqliteDatabase, work: (connection: SqliteDatabase) => T): T {
  try {
    return work(connection)
  } finally {
    connection.close()
  }
}
