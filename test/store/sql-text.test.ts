// SQL composed as text: whatever is inserted keeps its parameters, in the order of the text, and no value becomes text.
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { describe, expect, it } from 'vitest'
import { ALWAYS, SqlText, sqlText, toWhere } from '../../src/storage/lists/sql-text.ts'

const render = ({ pieces, parameters }: SqlText) => ({ text: pieces.join('?'), parameters })

describe('composed SQL', () => {
  it('has its parameters in the order of the text, also those of what is inserted', () => {
    const inner = sqlText`b = ${2} and c = ${'three'}`

    expect(render(sqlText`a = ${1} and (${inner}) or d = ${null}`)).toEqual({
      text: 'a = ? and (b = ? and c = ?) or d = ?',
      parameters: [1, 2, 'three', null],
    })
  })

  it('never contains a value as text', () => {
    const hostile = `' or 1 = 1 --?`

    expect(render(sqlText`name = ${hostile}`)).toEqual({ text: 'name = ?', parameters: [hostile] })
  })

  it('can be inserted several times', () => {
    const value = sqlText`lower(${'X'})`

    expect(render(sqlText`${value} = ${value}`)).toEqual({ text: 'lower(?) = lower(?)', parameters: ['X', 'X'] })
  })

  it('quotes names, each part by itself', () => {
    expect(
      render(sqlText`select ${sqlText.ref('a.b')} from ${sqlText.table('odd"name')} limit ${sqlText.lit(10)}`),
    ).toEqual({
      text: 'select "a"."b" from "odd""name" limit 10',
      parameters: [],
    })
  })

  it('joins with commas, or with what is given', () => {
    const terms = [sqlText`a = ${1}`, sqlText`b`, sqlText`c = ${3}`]

    expect(render(sqlText.join(terms))).toEqual({ text: 'a = ?, b, c = ?', parameters: [1, 3] })
    expect(render(sqlText.join(terms, sqlText.raw(' and '))).text).toBe('a = ? and b and c = ?')
    expect(render(sqlText.join([]))).toEqual({ text: '', parameters: [] })
  })

  it('is an expression of Kysely, too', () => {
    const db = new Kysely<{ t: { a: number; b: number } }>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (own) => new SqliteIntrospector(own),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    })
    const condition = new SqlText<boolean>(['"a" = ', ' or "a" = ', ''], [1, 2])

    const { sql: text, parameters } = db.selectFrom('t').select('a').where('b', '=', 0).where(condition).compile()

    expect({ text, parameters }).toEqual({
      text: 'select "a" from "t" where "b" = ? and "a" = ? or "a" = ?',
      parameters: [0, 1, 2],
    })
  })

  it('has no where clause for conditions that every row meets', () => {
    expect(render(sqlText`select 1${toWhere([])}`).text).toBe('select 1')
    expect(render(sqlText`select 1${toWhere([ALWAYS, ALWAYS])}`).text).toBe('select 1')
    expect(render(sqlText`select 1${toWhere([ALWAYS, sqlText`a = ${1}`, sqlText`b = ${2}`])}`)).toEqual({
      text: 'select 1 where a = ? and b = ?',
      parameters: [1, 2],
    })
  })
})
