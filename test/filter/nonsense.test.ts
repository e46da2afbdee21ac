// Nonsense as queries: random bytes, and queries with something wrong. Always a list, or a refusal that says where.
import { beforeAll, describe, expect, it } from 'vitest'
import { parseQuery, parseSort } from '../../src/storage/filter/parse.ts'
import { planList } from '../../src/storage/lists/list-plan.ts'
import { list } from '../../src/storage/lists/lists.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { type Random, random } from '../world/random.ts'
import { useController } from '../world/use-controller.ts'
import { type Listed, randomNetwork } from './random-network.ts'
import { QueryMaker } from './random-queries.ts'

const TEXTS = 20_000
const QUERIES = 3_000

const world = useController()
let lists: Listed[]

beforeAll(async () => {
  lists = await randomNetwork(world, random(2), 10)
})

interface Cause {
  readonly message?: string
  readonly data?: { readonly line: number; readonly column: number }
}

/** Requires that an error is a refusal that names a place in the text. */
function assertRefusal(error: unknown, text: string): void {
  const { code = '', publicCause } = error as { code?: string; publicCause?: Cause }
  const { message = '', data } = publicCause ?? {}
  const lines = text.split(/\r\n|\n|\r/).length
  const isPlace = data !== undefined && data.line >= 1 && data.line <= lines && data.column >= 1
  const isSaid = isPlace && message.endsWith(` at line ${data.line}, column ${data.column}`)
  if (!isSaid || (code !== 'INVALID_FILTER' && code !== 'INVALID_SORT_IDENTIFIER'))
    throw new Error(`${JSON.stringify(text)} threw something else: ${code} ${message}`, { cause: error })
}

const ALPHABETS: readonly ((dice: Random) => string)[] = [
  (dice) => String.fromCharCode(dice.below(256)),
  (dice) => String.fromCodePoint(dice.below(0xd800)),
  (dice) =>
    dice.pick(['"', '\\', '(', ')', '[', ']', ',', '=', '<', '>', '!', ' ', '\n', '.', '-', '0', 'a', 'datetime(']),
  (dice) =>
    `${dice.pick(['not', 'and', 'or', 'in', 'between', 'contains', 'anyOf', 'count', 'from', 'where', 'sort', 'by', 'skip', 'limit', 'none', 'null', 'true', 'name', 'tags.a', '(', ')', '=', '"x"', '5', 'asc'])} `,
]

function nonsense(dice: Random): string {
  const letter = dice.pick(ALPHABETS)
  return Array.from({ length: dice.below(60) }, () => letter(dice)).join('')
}

/** The query with a few things taken out, doubled, swapped or put in. */
function damaged(dice: Random, query: string): string {
  let text = query
  for (let times = dice.below(3); times >= 0; times--) {
    const at = dice.below(text.length + 1)
    const length = 1 + dice.below(4)
    const [before, piece, after] = [text.slice(0, at), text.slice(at, at + length), text.slice(at + length)]
    text = dice.pick([
      before + after,
      before + piece + piece + after,
      before + [...piece].reverse().join('') + after,
      before + nonsense(dice).slice(0, length) + piece + after,
      before,
    ])
  }
  return text
}

describe('random text', () => {
  it('as a query or an order is read, or refused at a place', () => {
    for (let seed = 0; seed < TEXTS; seed++) {
      const text = nonsense(random(seed))
      for (const parse of [parseQuery, parseSort]) {
        try {
          parse(text)
        } catch (error) {
          assertRefusal(error, text)
        }
      }
    }
  })
})

describe.each([0, 1, 2, 3, 4])('queries of list %i that are almost right', (which) => {
  it('give a list, or are refused at a place', async () => {
    const { resource, symbols } = lists[which] as Listed
    let refused = 0
    for (let seed = 0; seed < QUERIES / 5; seed++) {
      const dice = random(which * 10_000 + seed)
      const text = damaged(dice, new QueryMaker(dice, symbols).expression().text)
      try {
        await list(world.controller.store, world.system, { resource, plan: planList({ filter: text }) })
      } catch (error) {
        assertRefusal(error, text)
        refused++
      }
    }

    expect(refused).toBeGreaterThan(QUERIES / 5 / 4)
  })
})

describe('queries as large as they can be', () => {
  const repeated = (piece: string, between = '') => Array.from({ length: 2_000 }, () => piece).join(between)

  it.each([
    ['negations', repeated('not ')],
    ['open brackets', repeated('(')],
    ['brackets around brackets', `${repeated('(')}name = "a"${repeated(')')}`],
    ['terms joined by and', repeated('isAdmin=true', ' and ')],
    ['terms joined by one and the other', repeated('isAdmin=true and isAdmin=false', ' or ')],
    ['values', `name in [${repeated('"a"', ',')}]`],
    ['sub-queries', repeated('anyOf(from roleAttributes where ')],
    ['keys of an order', `true sort by ${repeated('name', ',')}`],
    ['an open string', `name = "${'a'.repeat(16_000)}`],
    ['escapes', `name = "${'\\\\'.repeat(8_000)}"`],
    ['digits', `name = ${'9'.repeat(16_000)}`],
    ['a number', `defaultHostingCost = 1e${'9'.repeat(100)}`],
    ['parts of a name', `tags${'.a'.repeat(8_000)} = 1`],
    ['line breaks', '\n'.repeat(16_000)],
    ['text beyond the limit', ' '.repeat(20_000)],
    ['a long needle', `name contains "${'a'.repeat(16_000)}"`],
    ['many needles', repeated('name icontains "é"', ' or ').slice(0, 16_000)],
  ])('of %s give a list, or are refused at a place', async (_what, text) => {
    const { resource } = lists[0] as Listed
    try {
      expect(
        (await list(world.controller.store, world.system, { resource, plan: planList({ filter: text }) })).keys,
      ).toBeInstanceOf(Array)
    } catch (error) {
      assertRefusal(error, text)
    }
  })

  it('are refused with 400 over HTTP', async () => {
    const token = await world.admin()
    const ask = (filter: string) =>
      world.send({ method: 'GET', path: `${MANAGEMENT}/identities?filter=${encodeURIComponent(filter)}`, token })

    for (const filter of ['name =', 'nothing = 1', `${'('.repeat(500)}`, '\u0000', 'name = "\ud83d\ude00'] as const) {
      const response = await ask(filter)
      expect(response.status).toBe(400)
      expect(response.body.error).toMatchObject({ code: 'INVALID_FILTER', cause: { code: 'INVALID_FILTER' } })
    }
  })
})
