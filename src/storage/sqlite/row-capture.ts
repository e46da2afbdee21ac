// Captures which rows a transaction changes, for processes that follow: temporary triggers write each change to a temporary table.
//
// The triggers exist only while another process follows, so that a controller alone pays nothing. They write text: to collect values in a
// table of columns took twice the instructions, and to call a function of JavaScript would also report what a statement or a
// savepoint has taken back. A group of creates takes half as many instructions again with them.
import type { Statement } from 'better-sqlite3'
import { SHARED_TABLES } from '../shared-tables.ts'
import type { RowChange } from '../transactions/row-changes.ts'
import type { SqliteDatabase } from './connection.ts'
import { listSharedTables, quoteName, type TableColumns } from './table-columns.ts'

const OPERATIONS = ['insert', 'update', 'delete'] as const

export class RowCapture {
  readonly #connection: SqliteDatabase
  #statements: { readonly read: Statement; readonly clear: Statement } | undefined

  #isPaused = false

  constructor(connection: SqliteDatabase) {
    this.#connection = connection
    connection.function('is_captured', () => (this.#isPaused ? 0 : 1))
  }

  /** Begins or ends capturing, between two transactions. */
  set(isOn: boolean): void {
    if (isOn === (this.#statements !== undefined)) return
    if (isOn) this.#begin()
    else this.#end()
  }

  /** Returns what the transaction in progress changed, since its beginning or the last call. */
  take(): readonly RowChange[] {
    if (!this.#statements) return []
    const { read, clear } = this.#statements
    const changes = read.all() as string[]
    if (changes.length > 0) clear.run()
    const parsed = JSON.parse(`[${changes.join()}]`) as RowChange[]
    return parsed.filter((change) => change.operation !== 'update' || Object.keys(change.row).length > 0)
  }

  /** Captures nothing meanwhile: to remove the triggers would take longer than most commits. */
  pause(work: () => void): void {
    this.#isPaused = true
    try {
      work()
    } finally {
      this.#isPaused = false
    }
  }

  #begin(): void {
    const connection = this.#connection
    connection.exec('create temp table row_changes (change text not null)')
    // Without it, a row that is replaced because of a conflict would vanish unnoticed.
    connection.pragma('recursive_triggers = on')
    for (const table of listSharedTables(connection))
      for (const operation of OPERATIONS) connection.exec(composeTrigger(operation, table))
    this.#statements = {
      read: connection.prepare('select change from temp.row_changes order by rowid').pluck(),
      clear: connection.prepare('delete from temp.row_changes'),
    }
  }

  #end(): void {
    for (const table of SHARED_TABLES)
      for (const operation of OPERATIONS) this.#connection.exec(`drop trigger temp.${nameTrigger(operation, table)}`)
    this.#connection.exec('drop table temp.row_changes')
    this.#connection.pragma('recursive_triggers = off')
    this.#statements = undefined
  }
}

type Operation = (typeof OPERATIONS)[number]

function nameTrigger(operation: Operation, table: string): string {
  return quoteName(`capture_${operation}_${table}`)
}

/** Statements in triggers cannot name the schema of their table; a temporary table is found first. */
function composeTrigger(operation: Operation, table: TableColumns): string {
  const name = nameTrigger(operation, table.table)
  return `create temp trigger ${name} after ${operation} on main.${quoteName(table.table)} when is_captured() begin
    insert into row_changes (change) values (${composeChange(operation, table)});
  end`
}

function composeChange(operation: Operation, { table, columns, key }: TableColumns): string {
  const head = `'{"table":"${table}","operation":"${operation}",'`
  switch (operation) {
    case 'insert':
      return `${head} || '"row":' || ${composeObject('new', columns)} || '}'`
    case 'update':
      return `${head} || '"key":' || ${composeObject('old', key)} || ',"row":{' || ltrim(${composeChanged(columns)}, ',') || '}}'`
    case 'delete':
      return `${head} || '"key":' || ${composeObject('old', key)} || '}'`
  }
}

function composeObject(row: 'new' | 'old', columns: readonly string[]): string {
  return `json_object(${columns.map((column) => `'${column}', ${row}.${quoteName(column)}`).join()})`
}

/** The members of the columns whose values changed, each after a comma. */
function composeChanged(columns: readonly string[]): string {
  const members = columns.map((column) => {
    const name = quoteName(column)
    return `case when old.${name} is not new.${name} then ',"${column}":' || json_quote(new.${name}) else '' end`
  })
  return members.join(' || ')
}
