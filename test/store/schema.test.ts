// The tables that migrations make are those that the definitions describe.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { listSetTables } from '../../src/definitions/model/columns.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

async function columnsOf(table: string) {
  const { rows } = await sql<{
    name: string
    type: string
    notnull: number
  }>`select name, type, "notnull" from pragma_table_info(${table})`.execute(world.controller.store.db)
  return Object.fromEntries(
    rows.map(({ name, type, notnull }) => [name, `${type.toLowerCase()}${notnull ? '' : ' null'}`]),
  )
}

async function uniqueColumnsOf(table: string): Promise<string[]> {
  const { rows } = await sql<{
    column: string
  }>`select info.name as "column" from pragma_index_list(${table}) list, pragma_index_info(list.name) info
    where list."unique" = 1 and (select count(*) from pragma_index_info(list.name)) = 1`.execute(
    world.controller.store.db,
  )
  return rows.map(({ column }) => column)
}

describe.each((resources as readonly AnyResource[]).map((resource) => [resource.plural, resource]))(
  'the table of %s',
  (_plural, resource) => {
    it('has a column for every field, and no other', async () => {
      const expected = Object.fromEntries(
        Object.entries(resource.fields).map(([name, { kind, options }]) => [
          name,
          `${kind.column}${options.nullable ? ' null' : ''}`,
        ]),
      )

      expect(await columnsOf(resource.table)).toEqual({ n: 'integer null', ...expected })
    })

    it('keeps unique what the definition says is unique', async () => {
      const expected = Object.entries(resource.fields).flatMap(([name, { options }]) => (options.unique ? [name] : []))

      expect(await uniqueColumnsOf(resource.table)).toEqual(expect.arrayContaining(expected))
    })

    it('has an index that begins with each reference', async () => {
      const references = Object.entries(resource.fields).flatMap(([name, { kind }]) =>
        kind.name === 'reference' ? [name] : [],
      )
      const { rows } = await sql<{
        column: string
      }>`select info.name as "column" from pragma_index_list(${resource.table}) list, pragma_index_info(list.name) info
      where info.seqno = 0`.execute(world.controller.store.db)

      expect(rows.map(({ column }) => column)).toEqual(expect.arrayContaining(references))
    })

    it.each(listSetTables(resource))('has a table for the members of $field', async ({ table }) => {
      expect(await columnsOf(table)).toEqual({ value: 'text', n: 'integer' })
    })
  },
)

it('no constraint waits for the commit, where it would fail other transactions', async () => {
  const { rows } = await sql<{ sql: string }>`select sql from sqlite_master where sql like '%deferr%'`.execute(
    world.controller.store.db,
  )

  expect(rows).toEqual([])
})
